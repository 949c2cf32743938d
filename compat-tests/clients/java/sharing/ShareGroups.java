import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The operations of the admin client on share groups. */
final class ShareGroups {
    private final Admin admin;

    ShareGroups(String bootstrap) {
        admin = Admin.create(Wire.settings(bootstrap));
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("alter_group_config", this::alterGroupConfig);
        operations.put("list_share_groups", none -> admin
            .listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.SHARE))).all().get().stream()
            .map(GroupListing::groupId)
            .collect(Collectors.toList()));
        operations.put("describe_share_group", this::describe);
        operations.put("delete_share_group", arguments ->
            admin.deleteShareGroups(List.of(Wire.text(arguments, "group"))).all().get());
        operations.put("share_offsets", arguments -> ShareOffsets.list(admin, Wire.text(arguments, "group")));
        operations.put("alter_share_offsets", this::alterOffsets);
        operations.put("delete_share_offsets", arguments -> admin
            .deleteShareGroupOffsets(Wire.text(arguments, "group"), Set.of(Wire.text(arguments, "topic"))).all().get());
    }

    /** Set settings of a group, leaving the others. */
    private Object alterGroupConfig(JsonNode arguments) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, Wire.text(arguments, "group"));
        Collection<AlterConfigOp> changes = new ArrayList<>();
        Wire.textsByName(arguments.get("configs")).forEach((key, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        return admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    /** Return the group's state, and of each member the [topic, partition]s that it reads. */
    private Object describe(JsonNode arguments) throws Exception {
        String group = Wire.text(arguments, "group");
        ShareGroupDescription description = admin.describeShareGroups(List.of(group)).all().get().get(group);
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("state", description.groupState().toString());
        described.put("members", description.members().stream()
            .map(member -> Consuming.pairs(member.assignment().topicPartitions()))
            .collect(Collectors.toList()));
        return described;
    }

    /** Let a group without members go on at [partition, offset]s of a topic. */
    private Object alterOffsets(JsonNode arguments) throws Exception {
        Map<TopicPartition, Long> offsets = new HashMap<>();
        for (JsonNode pair : arguments.get("offsets")) {
            offsets.put(new TopicPartition(Wire.text(arguments, "topic"), pair.get(0).asInt()), pair.get(1).asLong());
        }
        return admin.alterShareGroupOffsets(Wire.text(arguments, "group"), offsets).all().get();
    }
}
