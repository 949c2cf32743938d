"""The Kafka wire protocol without I/O: messages, frames and record batches, for anything that speaks it.

No sockets, no clock, no logging and no runtime: bytes in, values out, and back. `connection` is the place to start
for a server or a client, `messages` holds one module for each API, `records` the RecordBatch v2 format.
"""
