"""What kafka-python 3.x does in transactions."""

from __future__ import annotations

from contextlib import closing

import kafka
from background import ACKNOWLEDGE_TIMEOUT_S
from library import BOOTSTRAP, partitions_of
from serving import Deadline, operation

_POLL_MS = 100


@operation
def copy_in_transactions(source: str, copy: str, group: str, batch: int) -> int:
    """Copy a topic in transactions of `batch` records with their offsets, every third one aborted and done again.

    Return how many were committed.
    """
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=group,
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=batch,
    )
    producer = kafka.KafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=group)
    with closing(consumer), closing(producer):
        producer.init_transactions()
        [partition] = partitions_of(consumer, source)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        end = consumer.end_offsets([partition])[partition]
        deadline = Deadline(ACKNOWLEDGE_TIMEOUT_S)
        committed = rounds = 0
        while consumer.position(partition) < end:
            deadline.check(f"{committed} transactions")
            records = consumer.poll(_POLL_MS).get(partition, [])
            if not records:
                continue
            rounds += 1
            producer.begin_transaction()
            for record in records:
                producer.send(copy, record.value, record.key)
            following = kafka.structs.OffsetAndMetadata(records[-1].offset + 1, "", -1)
            producer.send_offsets_to_transaction({partition: following}, consumer.group_metadata())
            if rounds % 3 == 0:
                producer.abort_transaction()
                consumer.seek(partition, records[0].offset)
            else:
                producer.commit_transaction()
                committed += 1
    return committed
