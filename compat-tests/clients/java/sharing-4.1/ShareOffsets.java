import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;

/** How release 4.1 tells where a share group is. */
final class ShareOffsets {
    private ShareOffsets() {}

    /** Return [topic, partition, start offset]s. */
    static List<List<Object>> list(Admin admin, String group) throws Exception {
        return admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetAndMetadata(group).get().entrySet().stream()
            .map(one -> List.<Object>of(one.getKey().topic(), one.getKey().partition(), one.getValue().offset()))
            .sorted((one, other) -> one.toString().compareTo(other.toString()))
            .collect(Collectors.toList());
    }
}
