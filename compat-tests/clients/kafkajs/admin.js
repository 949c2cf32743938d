// What the admin client does: topics, groups, offsets and the cluster.
'use strict'

const { ConfigResourceTypes } = require('kafkajs')

const { kafka } = require('./client')
const { until } = require('./serving')

const TOPIC_ALREADY_EXISTS = 36
const CREATE_TIMEOUT_MS = 20_000

/** Run a function with an admin client of its own: one that was used before answers from the metadata that it has. */
async function admin(run) {
  const client = kafka.admin()
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.disconnect()
  }
}

const entriesOf = configs => Object.entries(configs ?? {}).map(([name, value]) => ({ name, value }))

/**
 * Create a topic and wait until the broker leads its partitions. The wait that kafkajs has fails where the topic is not
 * known at once; and a producer that meets a leader that is not ready sends all again, what was written too.
 */
async function createTopic({ topic, partitions = 1, configs }) {
  const wanted = { topic, numPartitions: partitions, replicationFactor: 1, configEntries: entriesOf(configs) }
  await admin(async client => {
    if (!(await client.createTopics({ topics: [wanted], waitForLeaders: false }))) {
      throw Object.assign(new Error(`${topic} is there already`), { code: TOPIC_ALREADY_EXISTS })
    }
    let refusal
    const look = () => client.fetchTopicOffsets(topic).catch(error => void (refusal = error))
    await until(look, CREATE_TIMEOUT_MS, () => refusal)
  })
}

const deleteTopic = ({ topic }) => admin(client => client.deleteTopics({ topics: [topic] }))

const listTopics = () => admin(client => client.listTopics())

async function countPartitions({ topic }) {
  const { topics } = await admin(client => client.fetchTopicMetadata({ topics: [topic] }))
  return topics[0].partitions.length
}

async function createPartitions({ topic, total }) {
  await admin(client => client.createPartitions({ topicPartitions: [{ topic, count: total }] }))
}

async function topicConfig({ topic, key }) {
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: [key] }]
  const described = await admin(client => client.describeConfigs({ resources, includeSynonyms: false }))
  return described.resources[0].configEntries[0].configValue
}

/** Set settings of a topic, which in kafkajs replaces all that the topic has. */
async function alterTopicConfig({ topic, configs }) {
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: entriesOf(configs) }]
  await admin(client => client.alterConfigs({ resources, validateOnly: false }))
}

/** Delete records, then ask for the new beginning, which the answer of kafkajs does not tell. */
async function deleteRecords({ topic, partition, before }) {
  const partitions = [{ partition, offset: String(before) }]
  await admin(async client => {
    await client.fetchTopicOffsets(topic) // kafkajs deletes only where it has met the topic before
    await client.deleteTopicRecords({ topic, partitions })
  })
  return (await offsetRange({ topic }))[partition][0]
}

async function offsetRange({ topic }) {
  const ranges = await admin(client => client.fetchTopicOffsets(topic))
  return ranges.sort((a, b) => a.partition - b.partition).map(({ low, high }) => [Number(low), Number(high)])
}

async function committed({ group, topic, partition }) {
  const [found] = await admin(client => client.fetchOffsets({ groupId: group, topics: [topic] }))
  const { offset } = found.partitions.find(one => one.partition === partition)
  return offset === '-1' ? null : Number(offset)
}

async function alterOffset({ group, topic, partition, offset }) {
  const partitions = [{ partition, offset: String(offset) }]
  await admin(client => client.setOffsets({ groupId: group, topic, partitions }))
}

async function describeCluster() {
  const { clusterId, controller, brokers } = await admin(client => client.describeCluster())
  return { cluster_id: clusterId, controller, nodes: brokers.map(({ nodeId, host, port }) => [nodeId, host, port]) }
}

async function listGroups() {
  const { groups } = await admin(client => client.listGroups())
  return groups.map(({ groupId }) => groupId)
}

async function describeGroup({ group }) {
  const { groups } = await admin(client => client.describeGroups([group]))
  return { state: groups[0].state, protocol: groups[0].protocol, members: groups[0].members.length }
}

const deleteGroup = ({ group }) => admin(client => client.deleteGroups([group])).then(() => null)

module.exports = {
  admin,
  operations: {
    create_topic: createTopic,
    delete_topic: deleteTopic,
    list_topics: listTopics,
    count_partitions: countPartitions,
    create_partitions: createPartitions,
    topic_config: topicConfig,
    alter_topic_config: alterTopicConfig,
    delete_records: deleteRecords,
    offset_range: offsetRange,
    committed,
    alter_offset: alterOffset,
    describe_cluster: describeCluster,
    list_groups: listGroups,
    describe_group: describeGroup,
    delete_group: deleteGroup,
  },
}
