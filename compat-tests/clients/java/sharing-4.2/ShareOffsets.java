import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;

/** How releases 4.2 and later tell where a share group is. */
final class ShareOffsets {
    private ShareOffsets() {}

    /** Return [topic, partition, start offset, lag]s. */
    static List<List<Object>> list(Admin admin, String group) throws Exception {
        return admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group).get().entrySet().stream()
            .filter(one -> one.getValue() != null)
            .map(one -> List.<Object>of(
                one.getKey().topic(),
                one.getKey().partition(),
                one.getValue().startOffset(),
                one.getValue().lag().orElse(-1L)))
            .sorted((one, other) -> one.toString().compareTo(other.toString()))
            .collect(Collectors.toList());
    }
}
