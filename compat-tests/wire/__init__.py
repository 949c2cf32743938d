"""Asking two brokers the same things over the wire and comparing what they answer.

`schemas.py` reads Kafka's message definitions from the `kafka-clients` jar, `codec.py` writes and reads messages by
them, `client.py` holds one conversation with one broker, `records.py` makes record batches, `requests.py` makes
requests from the definitions alone. `comparison.py` runs a conversation with both brokers and compares the replies by
the kinds of rules in `rules.py`; `differences.py` lists what may differ and why. None of it uses Odradek's own protocol
library, so that a mistake in that library cannot hide itself here.
"""
