import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** What releases 2.5 and later have in common; some of it is marked for removal in the newest. */
@SuppressWarnings({"deprecation", "removal"})
abstract class LaterRelease {
    final Admin admin;
    private final Consuming consuming;

    LaterRelease(String bootstrap, Consuming consuming) {
        this.admin = Admin.create(Wire.settings(bootstrap));
        this.consuming = consuming;
    }

    abstract int countPartitions(String topic) throws Exception;

    static List<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer, long timeoutMs) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        consumer.poll(Duration.ofMillis(timeoutMs)).forEach(records::add);
        return records;
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("count_partitions", arguments -> countPartitions(Wire.text(arguments, "topic")));
        operations.put("create_partitions", arguments -> admin.createPartitions(
            Map.of(Wire.text(arguments, "topic"), NewPartitions.increaseTo(arguments.get("total").asInt())))
            .all().get());
        operations.put("alter_topic_config", this::alterTopicConfig);
        operations.put("change_topic_config", this::changeTopicConfig);
        operations.put("delete_records", this::deleteRecords);
        operations.put("list_groups", none -> admin.listConsumerGroups().all().get().stream()
            .map(ConsumerGroupListing::groupId)
            .collect(Collectors.toList()));
        operations.put("describe_group", this::describeGroup);
        operations.put("delete_group", arguments ->
            admin.deleteConsumerGroups(List.of(Wire.text(arguments, "group"))).all().get());
        operations.put("committed", this::committed);
        operations.put("alter_offset", this::alterOffset);
        operations.put("member_id", arguments -> consuming.named(arguments).groupMetadata().memberId());
    }

    /** Set settings of a topic, leaving the others. */
    private Object alterTopicConfig(JsonNode arguments) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        Wire.textsByName(arguments.get("configs")).forEach((key, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        return alter(arguments, changes);
    }

    /** Apply [operation, key, value] changes: set, delete, append, subtract. */
    private Object changeTopicConfig(JsonNode arguments) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        for (JsonNode change : arguments.get("changes")) {
            String value = change.get(2).isNull() ? null : change.get(2).asText();
            AlterConfigOp.OpType operation = AlterConfigOp.OpType.valueOf(change.get(0).asText().toUpperCase());
            changes.add(new AlterConfigOp(new ConfigEntry(change.get(1).asText(), value), operation));
        }
        return alter(arguments, changes);
    }

    private Object alter(JsonNode arguments, Collection<AlterConfigOp> changes) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, Wire.text(arguments, "topic"));
        return admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    /** Delete what lies before an offset; return the partition's new beginning. */
    private Object deleteRecords(JsonNode arguments) throws Exception {
        TopicPartition partition = Wire.partition(arguments);
        RecordsToDelete records = RecordsToDelete.beforeOffset(arguments.get("before").asLong());
        return admin.deleteRecords(Map.of(partition, records)).lowWatermarks().get(partition).get().lowWatermark();
    }

    /** Return the group's state, protocol and number of members, and the static members' instance ids. */
    private Object describeGroup(JsonNode arguments) throws Exception {
        String group = Wire.text(arguments, "group");
        ConsumerGroupDescription description = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("state", description.state().toString());
        described.put("protocol", description.partitionAssignor());
        described.put("members", description.members().size());
        described.put("instances", description.members().stream()
            .map(MemberDescription::groupInstanceId)
            .flatMap(instance -> instance.stream())
            .sorted()
            .collect(Collectors.toList()));
        return described;
    }

    private Object committed(JsonNode arguments) throws Exception {
        OffsetAndMetadata committed = admin.listConsumerGroupOffsets(Wire.text(arguments, "group"))
            .partitionsToOffsetAndMetadata().get().get(Wire.partition(arguments));
        return committed == null ? null : committed.offset();
    }

    /** Set the committed offset of a group without members. */
    private Object alterOffset(JsonNode arguments) throws Exception {
        OffsetAndMetadata offset = new OffsetAndMetadata(arguments.get("offset").asLong());
        return admin.alterConsumerGroupOffsets(
            Wire.text(arguments, "group"), Map.of(Wire.partition(arguments), offset)).all().get();
    }
}
