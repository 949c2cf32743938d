// The driver of kafkajs: its operations are those of all drivers, and its only argument is the broker's address.
'use strict'

const { operations: administering } = require('./admin')
const { closeConsumers, operations: consuming } = require('./consuming')
const { operations: producing, stopProducing } = require('./producing')
const { serve } = require('./serving')

async function reset() {
  stopProducing()
  await closeConsumers()
}

serve({ ...administering, ...consuming, ...producing, reset })
