import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The operations of share consumers. A record also has `deliveries`, how often it was delivered to the group. */
final class Sharing {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final int POLL_TIMEOUT_MS = 40_000;

    private final String bootstrap;
    private final Map<String, KafkaShareConsumer<byte[], byte[]>> consumers = new HashMap<>();
    private final Map<String, Map<List<Object>, ConsumerRecord<byte[], byte[]>>> polled = new HashMap<>();
    private Workers workers;

    Sharing(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("open_share", this::open);
        operations.put("share_poll", this::poll);
        operations.put("share_acknowledge", this::acknowledge);
        operations.put("share_commit", arguments -> errors(named(arguments).commitSync()));
        operations.put("close_share", arguments -> {
            consumers.remove(Wire.text(arguments, "name")).close();
            return null;
        });
        operations.put("start_sharing", arguments -> {
            List<KafkaShareConsumer<byte[], byte[]>> members = new ArrayList<>();
            for (JsonNode name : arguments.get("names")) {
                members.add(consumers.remove(name.asText()));
            }
            workers = new Workers(members);
            return null;
        });
        operations.put("wait_accepted", arguments -> workers.waitFor(arguments.get("count").asInt()));
        operations.put("finish_sharing", none -> workers.finish());
    }

    void reset() throws Exception {
        if (workers != null) {
            workers.finish();
            workers = null;
        }
        consumers.values().forEach(KafkaShareConsumer::close);
        consumers.clear();
    }

    private KafkaShareConsumer<byte[], byte[]> named(JsonNode arguments) {
        return consumers.get(Wire.text(arguments, "name"));
    }

    /** Join a group: `explicit` acknowledgements, how records are acquired (`acquire`), how many are polled at most. */
    private Object open(JsonNode arguments) {
        String name = Wire.text(arguments, "name");
        Properties settings = Wire.settings(
            bootstrap,
            "group.id", Wire.text(arguments, "group"),
            "share.acknowledgement.mode", arguments.path("explicit").asBoolean() ? "explicit" : "implicit",
            "share.acquire.mode", arguments.path("acquire").asText("batch_optimized"),
            "max.poll.records", arguments.path("max_records").asInt(500),
            "metadata.max.age.ms", 5_000,
            "reconnect.backoff.max.ms", 500);
        KafkaShareConsumer<byte[], byte[]> consumer =
            new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumers.put(name, consumer);
        polled.put(name, new HashMap<>());
        consumer.subscribe(Wire.texts(arguments.get("topics")));
        return null;
    }

    /**
     * Poll the consumers in turns, once at least, until they have `count` records together, or more. Each record is
     * acknowledged as `type` says, if that is given.
     */
    private Object poll(JsonNode arguments) throws Exception {
        int count = arguments.get("count").asInt();
        Map<String, List<Object>> seen = new LinkedHashMap<>();
        Wire.texts(arguments.get("names")).forEach(name -> seen.put(name, new ArrayList<>()));
        long end = System.currentTimeMillis() + POLL_TIMEOUT_MS;
        int found = 0;
        do {
            if (System.currentTimeMillis() > end) {
                throw new TimeoutException(found + " of " + count + " records, so far " + seen);
            }
            for (String name : seen.keySet()) {
                for (ConsumerRecord<byte[], byte[]> record : consumers.get(name).poll(POLL)) {
                    found++;
                    seen.get(name).add(shown(record));
                    polled.get(name).put(List.of(record.partition(), record.offset()), record);
                    if (Wire.has(arguments, "type")) {
                        consumers.get(name).acknowledge(record, AcknowledgeType.valueOf(Wire.text(arguments, "type")));
                    }
                }
            }
        } while (found < count);
        return seen;
    }

    /** Acknowledge records that were polled: [partition, offset, type]. */
    private Object acknowledge(JsonNode arguments) {
        Map<List<Object>, ConsumerRecord<byte[], byte[]>> records = polled.get(Wire.text(arguments, "name"));
        for (JsonNode one : arguments.get("records")) {
            ConsumerRecord<byte[], byte[]> record = records.get(List.of(one.get(0).asInt(), one.get(1).asLong()));
            named(arguments).acknowledge(record, AcknowledgeType.valueOf(one.get(2).asText()));
        }
        return null;
    }

    /** Return the name of the exception of each partition, "" where all is well. */
    private static Map<Integer, String> errors(Map<TopicIdPartition, Optional<KafkaException>> results) {
        Map<Integer, String> errors = new TreeMap<>();
        results.forEach((partition, error) ->
            errors.put(partition.partition(), error.map(thrown -> thrown.getClass().getSimpleName()).orElse("")));
        return errors;
    }

    private static Map<String, Object> shown(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> shown = Wire.record(record);
        shown.put("deliveries", record.deliveryCount().map(Short::intValue).orElse(null));
        return shown;
    }

    /** Members of a group, each in a thread of its own, that accept what they get and keep what was confirmed. */
    private static final class Workers {
        private static final int TIMEOUT_MS = 80_000;

        private final List<Thread> threads = new ArrayList<>();
        private final List<List<Object>> events = new ArrayList<>();
        private volatile boolean stopping;
        private int accepted;
        private Exception failure;

        Workers(List<KafkaShareConsumer<byte[], byte[]>> members) {
            for (KafkaShareConsumer<byte[], byte[]> member : members) {
                Thread thread = new Thread(() -> work(member));
                threads.add(thread);
                thread.start();
            }
        }

        private void work(KafkaShareConsumer<byte[], byte[]> member) {
            try (member) {
                while (!stopping) {
                    Map<Integer, List<Long>> offsets = new TreeMap<>();
                    for (ConsumerRecord<byte[], byte[]> record : member.poll(POLL)) {
                        member.acknowledge(record, AcknowledgeType.ACCEPT);
                        offsets.computeIfAbsent(record.partition(), none -> new ArrayList<>()).add(record.offset());
                        add("delivered", record.partition(), record.offset());
                    }
                    member.commitSync().forEach((partition, error) -> {
                        String what = error.isPresent() ? "refused" : "accepted";
                        offsets.getOrDefault(partition.partition(), List.of()).forEach(one -> add(what, partition.partition(), one));
                    });
                }
            } catch (Exception e) {
                synchronized (this) {
                    failure = e;
                    notifyAll();
                }
            }
        }

        private synchronized void add(String what, int partition, long offset) {
            events.add(List.of(what, partition, offset));
            if (what.equals("accepted")) {
                accepted++;
                notifyAll();
            }
        }

        synchronized int waitFor(int count) throws Exception {
            long end = System.currentTimeMillis() + TIMEOUT_MS;
            while (accepted < count) {
                long left = end - System.currentTimeMillis();
                if (failure != null) {
                    throw failure;
                }
                if (left <= 0) {
                    throw new TimeoutException(accepted + " of " + count + " accepted");
                }
                wait(left);
            }
            return accepted;
        }

        /** Return what happened, in order: ["delivered", "accepted" or "refused", partition, offset]. */
        List<List<Object>> finish() throws Exception {
            stopping = true;
            for (Thread thread : threads) {
                thread.join(TIMEOUT_MS);
            }
            synchronized (this) {
                if (failure != null) {
                    throw failure;
                }
                return events;
            }
        }
    }
}
