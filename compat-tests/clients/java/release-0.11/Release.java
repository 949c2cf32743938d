import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.config.ConfigResource;

/** Releases before 2.0, whose admin client knows no groups. */
final class Release {
    private final String bootstrap;
    private final Consuming consuming;
    private final AdminClient admin;

    Release(String bootstrap, Consuming consuming) {
        this.bootstrap = bootstrap;
        this.consuming = consuming;
        this.admin = AdminClient.create(Wire.settings(bootstrap));
    }

    static List<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer, long timeoutMs) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        consumer.poll(timeoutMs).forEach(records::add);
        return records;
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("count_partitions", this::countPartitions);
        operations.put("alter_topic_config", this::alterTopicConfig);
        operations.put("committed", this::committed);
    }

    private Object countPartitions(JsonNode arguments) throws Exception {
        String topic = Wire.text(arguments, "topic");
        return admin.describeTopics(List.of(topic)).all().get().get(topic).partitions().size();
    }

    /** Replace the settings of a topic. */
    private Object alterTopicConfig(JsonNode arguments) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, Wire.text(arguments, "topic"));
        List<ConfigEntry> entries = new ArrayList<>();
        Wire.textsByName(arguments.get("configs")).forEach((key, value) -> entries.add(new ConfigEntry(key, value)));
        return admin.alterConfigs(Map.of(resource, new Config(entries))).all().get();
    }

    private Object committed(JsonNode arguments) {
        Properties settings = Wire.settings(bootstrap, "group.id", Wire.text(arguments, "group"));
        try (KafkaConsumer<byte[], byte[]> consumer = consuming.open(settings)) {
            OffsetAndMetadata committed = consumer.committed(Wire.partition(arguments));
            return committed == null ? null : committed.offset();
        }
    }
}
