import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The operations of producers. */
final class Producing {
    private static final int IN_FLIGHT = 20;
    private static final int ACKNOWLEDGE_TIMEOUT_MS = 90_000;

    private final String bootstrap;
    private Background background;

    Producing(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("produce", this::produce);
        operations.put("start_producing", arguments -> {
            background = new Background(Wire.text(arguments, "topic"));
            background.start();
            return null;
        });
        operations.put("wait_acknowledged", arguments -> background.waitFor(arguments.get("more").asInt()));
        operations.put("finish_producing", none -> background.finish());
    }

    void reset() {
        if (background != null) {
            background.stopping = true;
        }
    }

    private KafkaProducer<byte[], byte[]> open(Object... pairs) {
        return new KafkaProducer<>(
            Wire.settings(bootstrap, pairs), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Send all, then wait for all; return [partition, offset] of each. */
    private Object produce(JsonNode arguments) throws Exception {
        String topic = Wire.text(arguments, "topic");
        List<List<Long>> acknowledged = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = open(
            "acks", "all",
            "linger.ms", 20,
            "compression.type", Wire.has(arguments, "compression") ? Wire.text(arguments, "compression") : "none",
            // Before 2.1 nothing is tried again unless asked for; one request at a time keeps the order when it is.
            "retries", 1_000_000,
            "max.in.flight.requests.per.connection", 1,
            "enable.idempotence", arguments.path("idempotent").asBoolean(),
            "max.request.size", arguments.path("max_request_bytes").asInt(1 << 20))) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : arguments.get("records")) {
                sent.add(producer.send(Wire.record(topic, record)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                acknowledged.add(List.of((long) one.get().partition(), one.get().offset()));
            }
        }
        return acknowledged;
    }

    /** Produces numbered values until told to stop, few at a time, and keeps what was acknowledged. */
    private final class Background extends Thread {
        volatile boolean stopping;
        private final String topic;
        private final List<List<Object>> acknowledged = new ArrayList<>();
        private Exception failure;

        Background(String topic) {
            this.topic = topic;
            setDaemon(true);
        }

        @Override
        public void run() {
            try (KafkaProducer<byte[], byte[]> producer = open(
                "acks", "all",
                "enable.idempotence", true,
                "max.block.ms", ACKNOWLEDGE_TIMEOUT_MS,
                "reconnect.backoff.max.ms", 500)) {
                produce(producer);
            } catch (Exception e) {
                synchronized (this) {
                    failure = e;
                    notifyAll();
                }
            }
        }

        private void produce(KafkaProducer<byte[], byte[]> producer) throws Exception {
            Queue<Future<RecordMetadata>> pending = new ArrayDeque<>();
            int sent = 0;
            int confirmed = 0;
            while (!pending.isEmpty() || !stopping) {
                while (pending.size() < IN_FLIGHT && !stopping) {
                    byte[] value = ("number " + sent++).getBytes();
                    pending.add(producer.send(new ProducerRecord<>(topic, value)));
                }
                if (pending.isEmpty()) {
                    continue;
                }
                RecordMetadata metadata = pending.remove().get(ACKNOWLEDGE_TIMEOUT_MS, TimeUnit.MILLISECONDS);
                synchronized (this) {
                    acknowledged.add(List.of(metadata.partition(), metadata.offset(), "number " + confirmed++));
                    notifyAll();
                }
            }
        }

        synchronized int waitFor(int more) throws Exception {
            int wanted = acknowledged.size() + more;
            long end = System.currentTimeMillis() + ACKNOWLEDGE_TIMEOUT_MS;
            while (acknowledged.size() < wanted) {
                long left = end - System.currentTimeMillis();
                if (failure != null) {
                    throw failure;
                }
                if (left <= 0) {
                    throw new TimeoutException(acknowledged.size() + " of " + wanted + " acknowledged");
                }
                wait(left);
            }
            return acknowledged.size();
        }

        List<List<Object>> finish() throws Exception {
            stopping = true;
            join(ACKNOWLEDGE_TIMEOUT_MS);
            synchronized (this) {
                if (failure != null) {
                    throw failure;
                }
                return acknowledged;
            }
        }
    }
}
