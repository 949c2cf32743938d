"""What the compatibility tests stand on: the brokers that they run against and the clients that they run.

A *target* (`target.py`, `odradek.py`, `kafka.py`) is a running broker. An *agent* (`agent.py`) is a child process that
holds one unmodified client library and does what a test asks. `java.py` runs Kafka's own command line tools.
Everything downloaded is pinned in `versions.py` and kept in the user's cache folder by `cache.py`.
"""
