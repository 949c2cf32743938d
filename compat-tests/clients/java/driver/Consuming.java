import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The operations of consumers. */
final class Consuming {
    private static final int POLL_MS = 100;
    private static final int PATIENCE_MS = 3 * POLL_MS;
    private static final int POLL_TIMEOUT_MS = 20_000;
    private static final int SETTLE_TIMEOUT_MS = 30_000;
    private static final Comparator<TopicPartition> BY_TOPIC_AND_INDEX =
        Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final String bootstrap;
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();
    private final Map<String, Moves> moves = new HashMap<>();
    private final ExecutorService pollers = Executors.newCachedThreadPool();

    Consuming(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("open_consumer", this::openConsumer);
        operations.put("poll", this::poll);
        operations.put("settle", this::settle);
        operations.put("rebalances", arguments -> moves.get(Wire.text(arguments, "name")).history);
        operations.put("seek", arguments -> {
            named(arguments).seek(Wire.partition(arguments), arguments.get("offset").asLong());
            return null;
        });
        operations.put("commit", arguments -> {
            named(arguments).commitSync();
            return null;
        });
        operations.put("close_consumer", arguments -> {
            consumers.remove(Wire.text(arguments, "name")).close();
            return null;
        });
        operations.put("read_all", this::readAll);
        operations.put("offset_range", this::offsetRange);
        operations.put("find_offsets", this::findOffsets);
    }

    void reset() {
        consumers.values().forEach(KafkaConsumer::close);
        consumers.clear();
    }

    /** Return the consumer that the argument `name` names. */
    KafkaConsumer<byte[], byte[]> named(JsonNode arguments) {
        return consumers.get(Wire.text(arguments, "name"));
    }

    KafkaConsumer<byte[], byte[]> open(Properties settings) {
        settings.setProperty("enable.auto.commit", "false");
        settings.setProperty("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private Object openConsumer(JsonNode arguments) {
        Properties settings = Wire.settings(bootstrap, "metadata.max.age.ms", 5_000);
        membership(arguments).forEach((key, value) -> settings.setProperty(key, String.valueOf(value)));
        if (Wire.has(arguments, "group")) {
            settings.setProperty("group.id", Wire.text(arguments, "group"));
        }
        if (Wire.has(arguments, "instance")) {
            settings.setProperty("group.instance.id", Wire.text(arguments, "instance"));
        }
        KafkaConsumer<byte[], byte[]> consumer = open(settings);
        consumers.put(Wire.text(arguments, "name"), consumer);
        if (Wire.has(arguments, "topics")) {
            Moves listener = new Moves();
            moves.put(Wire.text(arguments, "name"), listener);
            consumer.subscribe(Wire.texts(arguments.get("topics")), listener);
        }
        if (Wire.has(arguments, "partitions")) {
            List<TopicPartition> partitions = new ArrayList<>();
            arguments.get("partitions").forEach(pair ->
                partitions.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
            consumer.assign(partitions);
        }
        return null;
    }

    /** Return the settings of a member of a group; of the consumer protocol the broker has assignors and times. */
    private static Map<String, Object> membership(JsonNode arguments) {
        if (arguments.path("protocol").asText().equals("consumer")) {
            return Map.of(
                "group.protocol", "consumer",
                "group.remote.assignor", arguments.path("assignor").asText("uniform"));
        }
        return Map.of(
            "partition.assignment.strategy", ASSIGNORS.get(arguments.path("assignor").asText("range")),
            "session.timeout.ms", 10_000,
            "heartbeat.interval.ms", 500);
    }

    /** The history of a consumer's partitions: ["assigned" or "revoked", [topic, partition]s]. */
    private static final class Moves implements ConsumerRebalanceListener {
        final List<List<Object>> history = new ArrayList<>();

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            add("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            add("revoked", partitions);
        }

        private void add(String what, Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) {
                history.add(List.of(what, pairs(partitions)));
            }
        }
    }

    /** Poll the consumers until they have `count` records together; what is more is left for the next time. */
    private Object poll(JsonNode arguments) throws Exception {
        int count = arguments.get("count").asInt();
        Map<String, List<Object>> seen = new LinkedHashMap<>();
        Wire.texts(arguments.get("names")).forEach(name -> seen.put(name, new ArrayList<>()));
        long end = System.currentTimeMillis() + POLL_TIMEOUT_MS;
        int missing = count;
        while (missing > 0) {
            if (System.currentTimeMillis() > end) {
                throw new TimeoutException(count - missing + " of " + count + " records");
            }
            for (Map.Entry<String, List<ConsumerRecord<byte[], byte[]>>> polled : pollAll(seen.keySet()).entrySet()) {
                List<ConsumerRecord<byte[], byte[]>> records = polled.getValue();
                int taken = Math.min(missing, records.size());
                records.subList(0, taken).forEach(record -> seen.get(polled.getKey()).add(Wire.record(record)));
                putBack(consumers.get(polled.getKey()), records.subList(taken, records.size()));
                missing -= taken;
            }
        }
        return seen;
    }

    /** Poll until each consumer holds partitions and all hold `partitions`, none of them twice. */
    private Object settle(JsonNode arguments) throws Exception {
        List<String> names = Wire.texts(arguments.get("names"));
        int wanted = arguments.get("partitions").asInt();
        long end = System.currentTimeMillis() + SETTLE_TIMEOUT_MS;
        while (true) {
            pollAll(names).forEach((name, records) -> putBack(consumers.get(name), records));
            Map<String, List<List<Object>>> held = new LinkedHashMap<>();
            Set<TopicPartition> together = new HashSet<>();
            int total = 0;
            for (String name : names) {
                Set<TopicPartition> assignment = consumers.get(name).assignment();
                held.put(name, pairs(assignment));
                together.addAll(assignment);
                total += assignment.size();
            }
            if (total == wanted && together.size() == wanted && held.values().stream().noneMatch(List::isEmpty)) {
                return held;
            }
            if (System.currentTimeMillis() > end) {
                throw new TimeoutException("so far: " + held);
            }
        }
    }

    /**
     * Poll each consumer, in a thread of its own, until none of them is in a poll. A poll of an old release returns
     * only when its group is balanced, for which the others have to poll again meanwhile.
     */
    private Map<String, List<ConsumerRecord<byte[], byte[]>>> pollAll(Collection<String> names) throws Exception {
        Map<String, List<ConsumerRecord<byte[], byte[]>>> polled = new LinkedHashMap<>();
        Map<String, Future<List<ConsumerRecord<byte[], byte[]>>>> running = new HashMap<>();
        for (String name : names) {
            polled.put(name, new ArrayList<>());
            running.put(name, startPoll(name));
        }
        while (!running.isEmpty()) {
            long end = System.currentTimeMillis() + PATIENCE_MS;
            Set<String> finished = new HashSet<>();
            for (Map.Entry<String, Future<List<ConsumerRecord<byte[], byte[]>>>> poll : running.entrySet()) {
                long left = Math.max(0, end - System.currentTimeMillis());
                try {
                    polled.get(poll.getKey()).addAll(poll.getValue().get(left, TimeUnit.MILLISECONDS));
                    finished.add(poll.getKey());
                } catch (TimeoutException e) {
                    continue;
                }
            }
            running.keySet().removeAll(finished);
            if (!running.isEmpty()) {
                finished.forEach(name -> running.put(name, startPoll(name)));
            }
        }
        return polled;
    }

    private Future<List<ConsumerRecord<byte[], byte[]>>> startPoll(String name) {
        KafkaConsumer<byte[], byte[]> consumer = consumers.get(name);
        return pollers.submit(() -> Release.poll(consumer, POLL_MS));
    }

    private static void putBack(
        KafkaConsumer<byte[], byte[]> consumer, List<ConsumerRecord<byte[], byte[]>> records) {
        Map<TopicPartition, Long> firsts = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            firsts.putIfAbsent(new TopicPartition(record.topic(), record.partition()), record.offset());
        }
        firsts.forEach(consumer::seek);
    }

    /** Return every record between the beginning and the end of the topic, by partition and offset. */
    private Object readAll(JsonNode arguments) throws Exception {
        Map<TopicPartition, List<Object>> records = new TreeMap<>(BY_TOPIC_AND_INDEX);
        long end = System.currentTimeMillis() + SETTLE_TIMEOUT_MS;
        try (KafkaConsumer<byte[], byte[]> consumer = open(Wire.settings(bootstrap))) {
            List<TopicPartition> partitions = partitions(consumer, arguments);
            consumer.assign(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            consumer.seekToBeginning(partitions);
            while (partitions.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
                if (System.currentTimeMillis() > end) {
                    throw new TimeoutException("so far: " + records.size());
                }
                for (ConsumerRecord<byte[], byte[]> record : Release.poll(consumer, POLL_MS)) {
                    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                    records.computeIfAbsent(partition, none -> new ArrayList<>()).add(Wire.record(record));
                }
            }
        }
        return records.values().stream().flatMap(List::stream).collect(Collectors.toList());
    }

    /** Return [beginning, end] of each partition. */
    private Object offsetRange(JsonNode arguments) {
        try (KafkaConsumer<byte[], byte[]> consumer = open(Wire.settings(bootstrap))) {
            List<TopicPartition> partitions = partitions(consumer, arguments);
            Map<TopicPartition, Long> beginnings = consumer.beginningOffsets(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            return partitions.stream()
                .map(one -> List.of(beginnings.get(one), ends.get(one)))
                .collect(Collectors.toList());
        }
    }

    /** Return [offset, timestamp] of the first record at or after each timestamp, null where there is none. */
    private Object findOffsets(JsonNode arguments) {
        TopicPartition partition = Wire.partition(arguments);
        List<List<Long>> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = open(Wire.settings(bootstrap))) {
            for (JsonNode timestamp : arguments.get("timestamps")) {
                OffsetAndTimestamp one =
                    consumer.offsetsForTimes(Collections.singletonMap(partition, timestamp.asLong())).get(partition);
                found.add(one == null ? null : List.of(one.offset(), one.timestamp()));
            }
        }
        return found;
    }

    private static List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer, JsonNode arguments) {
        return sorted(consumer.partitionsFor(Wire.text(arguments, "topic")).stream()
            .map(info -> new TopicPartition(info.topic(), info.partition()))
            .collect(Collectors.toList()));
    }

    static List<List<Object>> pairs(Collection<TopicPartition> partitions) {
        return sorted(partitions).stream()
            .map(one -> List.<Object>of(one.topic(), one.partition()))
            .collect(Collectors.toList());
    }

    private static List<TopicPartition> sorted(Collection<TopicPartition> partitions) {
        return partitions.stream().sorted(BY_TOPIC_AND_INDEX).collect(Collectors.toList());
    }
}
