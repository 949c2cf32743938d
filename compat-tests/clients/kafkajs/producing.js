// Producing: a list of records at once, and numbered values in the background.
'use strict'

const { Partitioners } = require('kafkajs')

const { clientWith, codecs, kafka } = require('./client')
const { toBytes, until } = require('./serving')

const IN_FLIGHT = 20
const PATIENT = { initialRetryTime: 100, maxRetryTime: 500, retries: 600 } // for a broker that starts again
const ACKNOWLEDGE_TIMEOUT_MS = 90_000

/** Return the headers as kafkajs takes them: an object, an array where a name has several values. */
function headersOf(pairs) {
  const headers = {}
  for (const [name, value] of pairs) (headers[name] ??= []).push(toBytes(value))
  return headers
}

const messageOf = record => ({
  key: toBytes(record.key),
  value: toBytes(record.value),
  headers: headersOf(record.headers ?? []),
  partition: record.partition,
  timestamp: record.timestamp === undefined ? undefined : String(record.timestamp),
})

/** Send messages and return [partition, offset] of each: kafkajs tells a base offset for each partition. */
async function send(producer, chosen, topic, messages, compression) {
  const acknowledged = await producer.send({ topic, messages, acks: -1, compression })
  const next = new Map(acknowledged.map(({ partition, baseOffset }) => [partition, Number(baseOffset)]))
  return messages.map(message => {
    const partition = chosen.get(message)
    const offset = next.get(partition)
    next.set(partition, offset + 1)
    return [partition, offset]
  })
}

/** Connect a producer; return it with a map that tells which partition its own partitioner chose for a message. */
async function open(client, options) {
  const chosen = new Map()
  const createPartitioner = () => {
    const choose = Partitioners.DefaultPartitioner()
    return arguments_ => {
      const partition = choose(arguments_)
      chosen.set(arguments_.message, partition)
      return partition
    }
  }
  const producer = client.producer({ createPartitioner, ...options })
  await producer.connect()
  return [producer, chosen]
}

async function produce({ topic, records, compression, idempotent = false }) {
  const [producer, chosen] = await open(kafka, { idempotent })
  try {
    return await send(producer, chosen, topic, records.map(messageOf), codecs[compression ?? 'none'])
  } finally {
    await producer.disconnect()
  }
}

/** Produces numbered values until told to stop, few at a time, and keeps what was acknowledged. */
class Background {
  constructor(topic) {
    this.topic = topic
    this.acknowledged = []
    this.stopping = false
    this.finished = false
    this.error = null
    this.run().catch(error => (this.error = error)).finally(() => (this.finished = true))
  }

  async run() {
    const [producer, chosen] = await open(clientWith(PATIENT), { idempotent: true, maxInFlightRequests: 1 })
    for (let number = 0; !this.stopping; number += IN_FLIGHT) {
      const values = Array.from({ length: IN_FLIGHT }, (_, index) => `number ${number + index}`)
      const messages = values.map(value => ({ value }))
      const positions = await send(producer, chosen, this.topic, messages, codecs.none)
      positions.forEach((position, index) => this.acknowledged.push([...position, values[index]]))
      chosen.clear()
    }
    await producer.disconnect()
  }

  /** Wait until `done()`, or throw what the producer threw. */
  async wait(done) {
    const look = () => (this.error || done() ? true : undefined)
    await until(look, ACKNOWLEDGE_TIMEOUT_MS, () => `${this.acknowledged.length} acknowledged`)
    if (this.error) throw this.error
  }
}

let background = null

async function startProducing({ topic }) {
  background = new Background(topic)
}

async function waitAcknowledged({ more }) {
  const wanted = background.acknowledged.length + more
  await background.wait(() => background.acknowledged.length >= wanted)
  return background.acknowledged.length
}

async function finishProducing() {
  const stopped = background
  stopProducing()
  await stopped.wait(() => stopped.finished)
  return stopped.acknowledged
}

/** Let go of what the last test left running. */
function stopProducing() {
  if (background) background.stopping = true
  background = null
}

module.exports = {
  operations: {
    produce,
    start_producing: startProducing,
    wait_acknowledged: waitAcknowledged,
    finish_producing: finishProducing,
  },
  stopProducing,
}
