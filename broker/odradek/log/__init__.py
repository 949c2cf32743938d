"""The log store: partitions as folders of segments, in Kafka's own file formats.

Synchronous, without a runtime and without a clock: whoever calls passes the time. Only `files` touches the operating
system. The rule that everything here follows: check, then write, then publish; what was not written is not known.
"""
