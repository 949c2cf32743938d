"""The controller on a real embedded store, with a recorder for the local partitions."""

from pathlib import Path

import pytest
import trio
from support.cluster import Cluster, cluster

from odradek.cluster.plans import NewTopic
from odradek.cluster.store import Create, StoreError
from odradek.cluster.view import Endpoint, PartitionView, TopicView
from odradek.cluster.znodes import DeleteTopicZNode, TopicConfigZNode, TopicZNode, decode_uuid
from odradek_protocol.errors import BrokerError, Error


async def refusal(call: object) -> tuple[Error, str]:
    with pytest.raises(BrokerError) as caught:
        await call  # type: ignore[misc]  # whatever coroutine the test made
    return caught.value.error, caught.value.message


async def test_a_new_cluster_has_an_id_a_controller_and_a_broker(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        assert len(one.view.cluster_id) == 22
        assert len(decode_uuid(one.view.cluster_id)) == 16
        assert one.view.controller_id == 1
        assert one.view.brokers[1].endpoints == {"PLAINTEXT": Endpoint("127.0.0.1", 9092)}
        assert (await one.store.get("/controller_epoch")).data == b"1"
        cluster_id = one.view.cluster_id
    async with cluster(tmp_path) as again:
        assert again.view.cluster_id == cluster_id
        assert again.view.controller_id == 1
        assert (await again.store.get("/controller_epoch")).data == b"2"


async def test_a_second_broker_of_the_same_id_is_refused(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        with pytest.raises(StoreError, match="/brokers/ids/1: node exists"):
            await one.controller.register({}, None)


async def test_a_created_topic_is_served_before_it_is_seen_and_survives(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        made = await one.controller.create_topic(NewTopic("t", 3, 1, configs={"retention.ms": "5000"}))
        assert one.partitions.calls == [("apply", "t")]
        assert one.view.topics["t"] is one.view.topics_by_id[made.topic_id] is made
        assert made.partitions == [PartitionView(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))] * 3
        assert made.configs == {"retention.ms": "5000"}
        assert not made.internal
    async with cluster(tmp_path) as again:
        assert again.view.topics == {"t": made}
        assert again.partitions.topics == {"t": made}


async def test_a_topic_is_not_in_the_view_until_its_partitions_serve(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        one.partitions.hold = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.controller.create_topic, NewTopic("t"))
            while not one.partitions.calls:
                await trio.lowlevel.checkpoint()
            assert "t" not in one.view.topics
            one.partitions.hold.set()
        assert "t" in one.view.topics


async def test_t21_a_topic_id_is_random_and_new_after_recreation(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        ids = set()
        for _ in range(5):
            ids.add((await one.controller.create_topic(NewTopic("t"))).topic_id)
            await one.controller.delete_topic("t")
        assert len(ids) == 5
        assert all(len(topic_id) == 16 and int.from_bytes(topic_id) > 1 for topic_id in ids)
        assert one.view.topics_by_id == {}


async def test_t19_the_leader_epoch_is_kept_across_restarts(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("t"))
    for _ in range(2):
        async with cluster(tmp_path) as one:
            assert one.view.topics["t"].partitions[0].leader_epoch == 0


async def test_defaults_are_the_brokers(tmp_path: Path) -> None:
    async with cluster(tmp_path, num_partitions="4") as one:
        assert len((await one.controller.create_topic(NewTopic("t"))).partitions) == 4


async def test_t67_what_cannot_be_created(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        create = one.controller.create_topic
        await create(NewTopic("t1"))
        await create(NewTopic("a.b"))
        assert await refusal(create(NewTopic("t1"))) == (Error.TOPIC_ALREADY_EXISTS, "Topic 't1' already exists.")
        assert await refusal(create(NewTopic("a_b"))) == (
            Error.INVALID_TOPIC_EXCEPTION,
            "Topic 'a_b' collides with existing topic: a.b",
        )
        assert await refusal(create(NewTopic("t", 1, 3))) == (
            Error.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
            "only 1 broker(s) are registered.",
        )
        assert (await refusal(create(NewTopic("t", 0))))[0] is Error.INVALID_PARTITIONS
        assert (await refusal(create(NewTopic("t", -2))))[0] is Error.INVALID_PARTITIONS
        assert (await refusal(create(NewTopic("t", 1, 0))))[0] is Error.INVALID_REPLICATION_FACTOR
        assert (await refusal(create(NewTopic("t", 10_001))))[0] is Error.POLICY_VIOLATION
        assert await refusal(create(NewTopic("t", configs={"nope": "1"}))) == (
            Error.INVALID_CONFIG,
            "Unknown topic config name: nope",
        )
        assert await refusal(create(NewTopic("t", configs={"retention.ms": "abc"}))) == (
            Error.INVALID_CONFIG,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        )
        assert await refusal(create(NewTopic("t", configs={"retention.ms": None}))) == (
            Error.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        )
        assert (await refusal(create(NewTopic("__cluster_metadata"))))[0] is Error.INVALID_REQUEST
        assert set(one.view.topics) == {"t1", "a.b"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("bad/name", "'bad/name' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("new\nline", "'new\nline' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("naïve", "'naïve' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
async def test_t24_invalid_names(tmp_path: Path, name: str, reason: str) -> None:
    async with cluster(tmp_path) as one:
        expected = Error.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}"
        assert await refusal(one.controller.create_topic(NewTopic(name))) == expected
        assert await refusal(one.controller.create_topic_if_absent(name)) == expected


async def test_the_longest_name_is_legal(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("x" * 249))


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        ([(0, [1]), (1, [1])], None),
        ([(0, [])], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [2])], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1, 1])], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1]), (0, [1])], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1]), (2, [1])], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(1, [1])], Error.INVALID_REPLICA_ASSIGNMENT),
        ([(-1, [1])], Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_manual_assignments(
    tmp_path: Path, assignments: list[tuple[int, list[int]]], error: Error | None
) -> None:
    async with cluster(tmp_path) as one:
        new = NewTopic("t", assignments=assignments)
        if error is None:
            assert len((await one.controller.create_topic(new)).partitions) == len(assignments)
        else:
            assert (await refusal(one.controller.create_topic(new)))[0] is error


async def test_a_manual_assignment_leaves_no_numbers_to_give(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        for new in (NewTopic("t", 1, -1, [(0, [1])]), NewTopic("t", -1, 1, [(0, [1])])):
            assert (await refusal(one.controller.create_topic(new)))[0] is Error.INVALID_REQUEST


async def test_validate_only_makes_nothing(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        planned = await one.controller.create_topic(NewTopic("t", 2), validate_only=True)
        assert len(planned.partitions) == 2
        assert one.view.topics == {}
        assert one.partitions.calls == []
        assert await one.store.children("/brokers/topics") == []


async def test_of_many_who_create_one_topic_one_makes_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        outcomes: list[Error] = []

        async def create() -> None:
            try:
                await one.controller.create_topic(NewTopic("t"))
                outcomes.append(Error.NONE)
            except BrokerError as error:
                outcomes.append(error.error)

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(create)
        assert sorted(outcomes) == [Error.NONE, *[Error.TOPIC_ALREADY_EXISTS] * 7]
        assert one.partitions.calls == [("apply", "t")]


async def test_t17_auto_creation_is_the_same_for_all_who_ask(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        seen: list[TopicView] = []

        async def ask() -> None:
            seen.append(await one.controller.create_topic_if_absent("t"))
            assert "t" in one.partitions.topics

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(ask)
        assert len({topic.topic_id for topic in seen}) == 1
        assert one.partitions.calls == [("apply", "t")]


async def test_internal_topics_have_settings_of_their_own(tmp_path: Path) -> None:
    settings = {
        "offsets_topic_num_partitions": "7",
        "offsets_topic_replication_factor": "1",
        "transaction_state_log_num_partitions": "3",
        "transaction_state_log_replication_factor": "1",
        "transaction_state_log_min_isr": "1",
    }
    async with cluster(tmp_path, **settings) as one:
        offsets = await one.controller.create_internal_topic("__consumer_offsets")
        assert await one.controller.create_internal_topic("__consumer_offsets") is offsets
        assert offsets.internal
        assert len(offsets.partitions) == 7
        assert offsets.configs == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }
        # Asking for it by name, as a Metadata request does, makes the same.
        transactions = await one.controller.create_topic_if_absent("__transaction_state")
        assert transactions.internal
        assert len(transactions.partitions) == 3
        assert transactions.configs["cleanup.policy"] == "compact"
        assert transactions.configs["min.insync.replicas"] == "1"
        with pytest.raises(ValueError, match="not an internal topic"):
            await one.controller.create_internal_topic("t")


async def test_t71_partitions_are_added_at_the_end(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        first = await one.controller.create_topic(NewTopic("t1", 3))
        grown = await one.controller.create_partitions("t1", 5)
        assert grown.topic_id == first.topic_id
        assert grown.partitions[:3] == first.partitions
        assert len(grown.partitions) == 5
        assert one.partitions.topics["t1"] is one.view.topics["t1"] is grown
        assert len((await one.controller.create_partitions("t1", 9, validate_only=True)).partitions) == 9
        assert one.view.topics["t1"] is grown
        assert len((await one.controller.create_partitions("t1", 6, [[1]])).partitions) == 6
        made = one.view.topics["t1"]
    async with cluster(tmp_path) as again:
        assert again.view.topics == {"t1": made}


async def test_t71_what_cannot_be_grown(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("t1", 3))
        grow = one.controller.create_partitions
        assert await refusal(grow("t1", 2)) == (
            Error.INVALID_PARTITIONS,
            "The topic t1 currently has 3 partition(s); 2 would not be an increase.",
        )
        assert await refusal(grow("t1", 3)) == (Error.INVALID_PARTITIONS, "Topic already has 3 partition(s).")
        assert (await refusal(grow("nope", 3)))[0] is Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await refusal(grow("t1", 5, [[1]])) == (
            Error.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        )
        assert (await refusal(grow("t1", 4, [[2]])))[0] is Error.INVALID_REPLICA_ASSIGNMENT
        assert (await refusal(grow("t1", 10_004)))[0] is Error.POLICY_VIOLATION


async def test_t73_a_deleted_topic_is_gone_and_its_name_free(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("t", 3, configs={"retention.ms": "1"}))
        await one.controller.delete_topic("t")
        assert one.partitions.topics == {}
        assert one.view.topics == {}
        assert one.view.topics_by_id == {}
        assert await one.store.children("/brokers/topics") == []
        assert await one.store.children("/config/topics") == []
        assert await one.store.children("/admin/delete_topics") == []
        assert (await one.controller.create_topic(NewTopic("t"))).configs == {}
        assert (await refusal(one.controller.delete_topic("nope"))) == (
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )


@pytest.mark.parametrize("nodes_left", [True, False])
async def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path, nodes_left: bool) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("kept"))
        if nodes_left:
            await one.controller.create_topic(NewTopic("t", 3))
        await one.store.multi([Create(DeleteTopicZNode.path("t"))])
    async with cluster(tmp_path) as again:
        assert set(again.view.topics) == {"kept"}
        assert again.partitions.calls == [("remove", "t"), ("apply", "kept")][not nodes_left :]
        assert not await again.store.exists(TopicZNode.path("t"))
        assert not await again.store.exists(TopicConfigZNode.path("t"))
        assert await again.store.children("/admin/delete_topics") == []


async def test_a_deletion_that_the_disk_refuses_is_tried_again_at_the_next_start(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("t"))
        one.partitions.fail = BrokerError(Error.KAFKA_STORAGE_ERROR, "no rename")
        assert (await refusal(one.controller.delete_topic("t")))[0] is Error.KAFKA_STORAGE_ERROR
        refused = Cluster(one.store, {})
        refused.partitions.fail = one.partitions.fail
        await refused.controller.load()
        assert refused.view.topics == {}
        assert refused.partitions.calls == [("remove", "t")]
    async with cluster(tmp_path) as again:
        assert again.partitions.calls == [("remove", "t")]
        assert await again.store.children("/brokers/topics") == await again.store.children("/admin/delete_topics") == []


async def test_a_creation_that_was_cut_short_before_its_logs_is_finished_at_the_next_start(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        one.partitions.fail = BrokerError(Error.KAFKA_STORAGE_ERROR, "disk full")
        assert (await refusal(one.controller.create_topic(NewTopic("t"))))[0] is Error.KAFKA_STORAGE_ERROR
        # It is in the store, so nobody may be told that it is not there.
        assert (await refusal(one.controller.create_topic(NewTopic("t"))))[0] is Error.TOPIC_ALREADY_EXISTS
    async with cluster(tmp_path) as again:
        assert set(again.partitions.topics) == {"t"}


async def test_a_client_that_leaves_does_not_cut_a_change_short(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        one.partitions.hold = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.controller.create_topic, NewTopic("t"))
            while not one.partitions.calls:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
            one.partitions.hold.set()
        assert "t" in one.view.topics
        assert "t" in one.partitions.topics


async def test_a_request_that_gets_no_turn_in_its_time_has_changed_nothing(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        one.partitions.hold = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.controller.create_topic, NewTopic("slow"))
            while not one.partitions.calls:
                await trio.lowlevel.checkpoint()
            call = one.controller.create_topic(NewTopic("t"), timeout_ms=0)
            assert (await refusal(call))[0] is Error.REQUEST_TIMED_OUT
            one.partitions.hold.set()
        assert set(one.view.topics) == {"slow"}
        # A time of 0 is no reason to refuse what need not wait.
        await one.controller.create_topic(NewTopic("t"), timeout_ms=0)


async def test_topic_configs_are_replaced_whole_and_kept(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("t", configs={"retention.ms": "5000"}))
        changed = await one.controller.alter_topic_configs("t", lambda _: {"cleanup.policy": "compact"})
        assert changed.configs == {"cleanup.policy": "compact"}
        assert one.view.topics["t"] is one.partitions.topics["t"] is changed
        assert one.partitions.calls[-1] == ("configure", "t")
        bad = one.controller.alter_topic_configs("t", lambda _: {"retention.ms": "abc"})
        assert (await refusal(bad))[0] is Error.INVALID_CONFIG
        unknown = one.controller.alter_topic_configs("nope", lambda _: {})
        assert (await refusal(unknown))[0] is Error.UNKNOWN_TOPIC_OR_PARTITION
    async with cluster(tmp_path) as again:
        assert again.view.topics["t"].configs == {"cleanup.policy": "compact"}


async def test_broker_configs_take_effect_and_are_kept(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.alter_broker_configs(None, lambda _: {"log.retention.ms": "7000"})
        await one.controller.alter_broker_configs(1, lambda _: {"message.max.bytes": "2000"})
        assert one.config.message_max_bytes == 2000
        bad = one.controller.alter_broker_configs(None, lambda _: {"log.retention.ms": "abc"})
        assert (await refusal(bad))[0] is Error.INVALID_CONFIG
    async with cluster(tmp_path) as again:
        assert again.config.message_max_bytes == 2000
        assert again.config.topic_config({}).retention_ms == 7000


async def test_a_stored_setting_that_makes_no_sense_does_not_keep_the_broker_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.alter_broker_configs(None, lambda _: {"message.max.bytes": "2000"})
        await one.store.set_data("/config/brokers/<default>", b'{"version":1,"config":{"message.max.bytes":"abc"}}')
    async with cluster(tmp_path) as again:
        assert again.config.message_max_bytes == 1048588
    assert "message.max.bytes" in caplog.text


async def test_a_node_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("t"))
        await one.store.set_data(TopicZNode.path("t"), b"{}")
    with pytest.raises(ValueError, match="/brokers/topics/t"):
        async with cluster(tmp_path):
            pass


async def test_configs_that_are_only_validated_stay_as_they_were(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        made = await one.controller.create_topic(NewTopic("t"))
        planned = await one.controller.alter_topic_configs("t", lambda _: {"retention.ms": "1"}, validate_only=True)
        assert planned.configs == {"retention.ms": "1"}
        assert one.view.topics["t"] is made
        await one.controller.alter_broker_configs(None, lambda _: {"message.max.bytes": "2000"}, validate_only=True)
        assert one.config.message_max_bytes == 1048588
        assert not await one.store.exists("/config/brokers/<default>")


async def test_changes_of_the_same_settings_at_once_are_all_kept(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        await one.controller.create_topic(NewTopic("t"))

        async def override(key: str) -> None:
            await one.controller.alter_topic_configs("t", lambda old: {**old, key: "1000000"})

        keys = ["retention.ms", "segment.ms", "flush.ms", "max.message.bytes"]
        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(override, key)
        assert sorted(one.view.topics["t"].configs) == sorted(keys)
