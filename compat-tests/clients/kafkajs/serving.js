// The loop of a driver in JavaScript: JSON requests on stdin, one reply a line on stdout (see ../serving/serving.py).
'use strict'

const fs = require('node:fs')
const readline = require('node:readline')

/** Return the bytes that a JSON text stands for. */
const toBytes = text => (text == null ? null : Buffer.from(text, 'latin1'))

/** Return the JSON text that stands for bytes. */
const toText = bytes => (bytes == null ? null : bytes.toString('latin1'))

/** Wait until `found()` is not undefined and return it; an error that names `what()` when that takes too long. */
async function until(found, timeoutMs, what) {
  const end = Date.now() + timeoutMs
  for (;;) {
    const value = await found()
    if (value !== undefined) return value
    if (Date.now() > end) throw new Error(`not within the time; so far: ${what()}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

/** Return Kafka's code of an error: its own, or that of the error within it, which kafkajs keeps in several places. */
function codeOf(error) {
  if (error == null) return null
  if (Number.isInteger(error.code)) return error.code
  if (Array.isArray(error.errors)) return codeOf(error.errors[0])
  if (Array.isArray(error.partitions)) return codeOf(error.partitions[0].error)
  if (Array.isArray(error.groups)) return error.groups[0].errorCode
  return codeOf(error.cause)
}

/** Answer requests, one after the other, until stdin ends. */
async function serve(operations) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, operation, arguments: named } = JSON.parse(line)
    const reply = { id }
    try {
      reply.result = (await operations[operation](named)) ?? null
    } catch (error) {
      console.error(operation, error)
      reply.error = { kind: error.name, code: codeOf(error), message: String(error.message) }
    }
    fs.writeSync(1, `${JSON.stringify(reply)}\n`)
  }
  process.exit(0)
}

module.exports = { serve, toBytes, toText, until }
