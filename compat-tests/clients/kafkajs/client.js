// The clients of the process, and the codecs that kafkajs leaves to its users.
'use strict'

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4.compressFrame(encoder.buffer),
  decompress: async buffer => lz4.decompressFrame(buffer),
})

const zstd = new Promise(resolve => ZstdCodec.run(codec => resolve(new codec.Simple())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from((await zstd).decompress(buffer)),
})

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

/** Return a client that tries again as `retry` says. */
const clientWith = retry =>
  new Kafka({
    brokers: [process.argv[2]],
    logLevel: logLevel.WARN,
    logCreator: () => ({ namespace, log }) => console.error(namespace, log),
    retry,
  })

// Less than two seconds in all: the admin client tries an unknown topic again before it tells of it.
const kafka = clientWith({ initialRetryTime: 100, multiplier: 1.2, retries: 8 })

module.exports = { clientWith, codecs, kafka }
