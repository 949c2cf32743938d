import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * Adds up what is sold in each city.
 *
 * orders (order -> "customer amount") --by customer--> joined with customers (customer -> city)
 *     --by city--> totals (city -> sum), a RocksDB store whose every change goes to the output topic
 *
 * Both changes of key go through a repartition topic, and both tables have a changelog topic.
 */
final class Application {
    private static final String TOTALS = "totals";
    private static final int PORT = 4000; // nobody listens there: it is only told to the other instances

    private final KafkaStreams streams;
    private final Map<String, Long> restored = new ConcurrentHashMap<>();

    Application(Properties settings, String id, String guarantee, Path folder, String prefix, String protocol, String host) {
        settings.setProperty("application.id", id);
        settings.setProperty("processing.guarantee", guarantee);
        settings.setProperty("state.dir", folder.toString());
        settings.setProperty("commit.interval.ms", "200");
        settings.setProperty("statestore.cache.max.bytes", "0"); // every change is seen in the output topic
        if (protocol.equals("streams")) {
            settings.setProperty("group.protocol", protocol);
            settings.setProperty("num.stream.threads", "2");
            settings.setProperty("application.server", host + ":" + PORT);
        } else {
            // The least that a broker allows: a closed instance does not leave its group, its work waits for this long.
            settings.setProperty("consumer.session.timeout.ms", "6000");
            settings.setProperty("consumer.heartbeat.interval.ms", "500");
        }
        settings.setProperty("consumer.auto.offset.reset", "earliest");
        streams = new KafkaStreams(topology(prefix).build(), settings);
        streams.setGlobalStateRestoreListener(new Restoring());
        streams.start();
    }

    private static StreamsBuilder topology(String prefix) {
        Serde<String> text = Serdes.String();
        Serde<Long> number = Serdes.Long();
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> customers = builder.table(
            prefix + "-customers", Consumed.with(text, text), Materialized.as("customers"));
        builder.stream(prefix + "-orders", Consumed.with(text, text))
            .selectKey((order, sale) -> sale.split(" ")[0])
            .join(
                customers,
                (sale, city) -> KeyValue.pair(city, Long.parseLong(sale.split(" ")[1])),
                Joined.with(text, text, text))
            .map((customer, sale) -> sale)
            .groupByKey(Grouped.with(text, number))
            .reduce(Long::sum, Materialized.as(TOTALS))
            .toStream()
            .mapValues(String::valueOf)
            .to(prefix + "-totals", Produced.with(text, text));
        return builder;
    }

    /** Tell whether the tasks are shared out and the stores are restored. */
    boolean isRunning() {
        return streams.state() == KafkaStreams.State.RUNNING;
    }

    /** Tell whether it has given up. */
    boolean hasFailed() {
        return streams.state() == KafkaStreams.State.ERROR;
    }

    /** Return how many partitions of the source and repartition topics this instance processes. */
    int assignedPartitions() {
        return streams.metadataForLocalThreads().stream()
            .flatMap(thread -> thread.activeTasks().stream())
            .mapToInt(task -> task.topicPartitions().size())
            .sum();
    }

    /** Return the part of the store that this instance holds; nothing while the tasks move. */
    Map<String, Long> totals() {
        Map<String, Long> totals = new TreeMap<>();
        StoreQueryParameters<ReadOnlyKeyValueStore<String, Long>> query =
            StoreQueryParameters.fromNameAndType(TOTALS, QueryableStoreTypes.keyValueStore());
        try (KeyValueIterator<String, Long> all = streams.store(query).all()) {
            all.forEachRemaining(total -> totals.put(total.key, total.value));
        } catch (InvalidStateStoreException e) {
            return Map.of();
        }
        return totals;
    }

    /** Return how many partitions each instance processes, by its host, as the group tells this one. */
    Map<String, Integer> shares() {
        Map<String, Integer> shares = new TreeMap<>();
        streams.metadataForAllStreamsClients()
            .forEach(instance -> shares.merge(instance.host(), instance.topicPartitions().size(), Integer::sum));
        return shares;
    }

    /** Return how many standby tasks this instance has. */
    int standbyTasks() {
        return streams.metadataForLocalThreads().stream().mapToInt(thread -> thread.standbyTasks().size()).sum();
    }

    /** Return how many records of its changelog each store was restored from. */
    Map<String, Long> restored() {
        return restored;
    }

    void close() {
        streams.close();
    }

    private final class Restoring implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long first, long end) {}

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long records) {
            restored.merge(store, records, Long::sum);
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long records) {}
    }
}
