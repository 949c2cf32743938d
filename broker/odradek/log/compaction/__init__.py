"""Compaction: a log keeps the last record of each key, in Kafka's way and Kafka's files.

    choice        which log is dirtiest, and how far it may be cleaned                       in the broker
    requests      what the broker and the cleaning process say to each other
    cleaner       a round of cleaning: the offsets of the dirty keys, then new segments      in a process of its own
    offset_map    key -> offset of its last record, in bounded memory
    batches       what is left of one batch; `keys` reads the records, `transactions` knows the aborted ones
    replacement   new segments in place of old ones, and what a start makes of a crash       in the broker

Rules:

- Offsets, their order, leader epochs and timestamps never change. The active segment, what is at or behind the last
  stable offset, and what is younger than `min.compaction.lag.ms` is not touched.
- A record goes when a later one of its key is known, when it has no key, or when its transaction was aborted. A
  tombstone goes `delete.retention.ms` after the first round that left it in place: that moment, the delete horizon,
  is the base timestamp of its batch from then on, and attribute bit 6 says so (KIP-534). A transaction's marker goes in
  the same way once none of the transaction's batches is left.
- A batch keeps its first and last offset. One that has lost all its records stays, empty, where it is the last one of
  its producer or of the round, so that sequence numbers and the end of what was cleaned stay known.
- Messages of formats 0 and 1 keep their format. Their tombstones go with a segment that was last written to
  `delete.retention.ms` before the last clean one was, as there is no place for a horizon in them.
- The broker never waits for a record to be read: a process reads and writes, the broker renames.

Source: Kafka documentation, "Log Compaction"; Kafka's log cleaner; KIP-98, KIP-354, KIP-534.
"""
