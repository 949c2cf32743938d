// A consumer. In kafkajs every consumer is a member of a group: one of partitions has a group of its own.
'use strict'

const { randomUUID } = require('node:crypto')

const { kafka } = require('./client')
const { toText } = require('./serving')

const nameOf = (topic, partition) => `${topic} ${partition}`

function recordOf(topic, partition, message) {
  const headers = []
  for (const [name, values] of Object.entries(message.headers ?? {})) {
    for (const value of [].concat(values)) headers.push([name, toText(value)])
  }
  return {
    topic,
    partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: toText(message.key),
    value: toText(message.value),
    headers,
  }
}

/** Gathers the records that kafkajs hands out, and knows what is assigned. */
class Consumer {
  constructor(group) {
    this.held = []
    this.records = []
    this.positions = new Map() // of each partition: the next offset after what was taken
    this.sought = new Map() // of each partition: the offset whose record has not come yet since a seek
    this.client = kafka.consumer({
      groupId: group ?? `alone-${randomUUID()}`,
      sessionTimeout: 10_000,
      heartbeatInterval: 500,
      maxWaitTimeInMs: 100,
      metadataMaxAge: 5_000,
    })
    this.client.on(this.client.events.REBALANCING, () => this.assign({}))
    this.client.on(this.client.events.GROUP_JOIN, ({ payload }) => this.assign(payload.memberAssignment))
  }

  async open(topics) {
    await this.client.connect()
    await this.client.subscribe({ topics, fromBeginning: true })
    await this.client.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 100,
      eachMessage: async ({ topic, partition, message }) => this.put(recordOf(topic, partition, message)),
    })
  }

  assign(assignment) {
    this.held = Object.entries(assignment).flatMap(([topic, partitions]) => partitions.map(index => [topic, index]))
    this.records = []
    this.positions.clear()
  }

  put(record) {
    const name = nameOf(record.topic, record.partition)
    const sought = this.sought.get(name)
    if (sought !== undefined && sought !== record.offset) return
    this.sought.delete(name)
    this.records.push(record)
  }

  take(atMost) {
    const taken = this.records.splice(0, atMost)
    for (const { topic, partition, offset } of taken) {
      this.positions.set(nameOf(topic, partition), { topic, partition, offset: String(offset + 1) })
    }
    return taken
  }

  seek(topic, partition, offset) {
    this.sought.set(nameOf(topic, partition), offset)
    this.records = this.records.filter(record => record.topic !== topic || record.partition !== partition)
    this.client.seek({ topic, partition, offset: String(offset) })
  }

  async commit() {
    await this.client.commitOffsets([...this.positions.values()])
  }

  async close() {
    await this.client.disconnect()
  }
}

module.exports = { Consumer }
