// The consumers that a test holds open, and reading whole topics.
'use strict'

const { admin } = require('./admin')
const { Consumer } = require('./consumer')
const { until } = require('./serving')

const POLL_TIMEOUT_MS = 20_000
const SETTLE_TIMEOUT_MS = 30_000

const consumers = new Map()

async function openConsumer({ name, topics, partitions, group, instance, assignor }) {
  if (instance !== undefined) throw new Error('kafkajs has no static members')
  if (assignor !== undefined) throw new Error('kafkajs has one assigner, RoundRobinAssigner')
  const consumer = new Consumer(group)
  consumers.set(name, consumer)
  await consumer.open(topics ?? [...new Set(partitions.map(([topic]) => topic))])
  if (partitions) await joined(consumer)
}

const joined = consumer =>
  until(() => (consumer.held.length > 0 ? true : undefined), SETTLE_TIMEOUT_MS, () => 'no partition')

async function poll({ names, count }) {
  const seen = Object.fromEntries(names.map(name => [name, []]))
  let missing = count
  const look = () => {
    for (const name of names) {
      const taken = consumers.get(name).take(missing)
      seen[name].push(...taken)
      missing -= taken.length
    }
    return missing === 0 ? true : undefined
  }
  await until(look, POLL_TIMEOUT_MS, () => `${missing} of ${count} missing`)
  return seen
}

async function settle({ names, partitions }) {
  const holding = () => Object.fromEntries(names.map(name => [name, [...consumers.get(name).held].sort(inOrder)]))
  const look = () => {
    const held = holding()
    const all = Object.values(held).flat()
    const whole = all.length === partitions && new Set(all.map(String)).size === partitions
    return whole && names.every(name => held[name].length > 0) ? held : undefined
  }
  return until(look, SETTLE_TIMEOUT_MS, () => JSON.stringify(holding()))
}

const inOrder = ([topic, partition], [otherTopic, otherPartition]) =>
  topic < otherTopic ? -1 : topic > otherTopic ? 1 : partition - otherPartition

async function seek({ name, topic, partition, offset }) {
  consumers.get(name).seek(topic, partition, offset)
}

async function commit({ name }) {
  await consumers.get(name).commit()
}

async function closeConsumer({ name }) {
  const consumer = consumers.get(name)
  consumers.delete(name)
  await consumer.close()
}

async function closeConsumers() {
  for (const name of [...consumers.keys()]) await closeConsumer({ name })
}

async function readAll({ topic }) {
  const ranges = await admin(client => client.fetchTopicOffsets(topic))
  const total = ranges.reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0)
  const records = await readSome(topic, () => {}, total)
  return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
}

/** Read so many records of a topic with a consumer of its own, which `begin` may set to where it begins. */
async function readSome(topic, begin, count) {
  const consumer = new Consumer()
  const records = []
  const look = () => {
    records.push(...consumer.take(count - records.length))
    return records.length === count ? records : undefined
  }
  try {
    await consumer.open([topic])
    begin(consumer)
    return await until(look, POLL_TIMEOUT_MS, () => `${records.length} of ${count}`)
  } finally {
    await consumer.close()
  }
}

/** Find records by time. kafkajs tells their offsets alone, and the end where there is none: the record is read. */
async function findOffsets({ topic, partition, timestamps }) {
  const found = []
  for (const timestamp of timestamps) {
    const here = one => one.partition === partition
    const [{ offset }, { high }] = await admin(async client => [
      (await client.fetchTopicOffsetsByTimestamp(topic, timestamp)).find(here),
      (await client.fetchTopicOffsets(topic)).find(here),
    ])
    if (offset === high) {
      found.push(null)
    } else {
      const [record] = await readSome(topic, consumer => consumer.seek(topic, partition, Number(offset)), 1)
      found.push([record.offset, record.timestamp])
    }
  }
  return found
}

module.exports = {
  operations: {
    open_consumer: openConsumer,
    poll,
    settle,
    seek,
    commit,
    close_consumer: closeConsumer,
    read_all: readAll,
    find_offsets: findOffsets,
  },
  closeConsumers,
}
