"""One module for each API key: what is answered to its requests. No handler imports another.

A handler is an async function of (node, connection, request) that `registry.handles` enters under its request class.
It catches BrokerError where a reply has an error code for each partition, group or resource; what escapes it is
answered by `server`.
"""
