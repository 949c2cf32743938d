import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.TopicPartitionReplica;

/** Moves replicas with Kafka's Admin client. Arguments: bootstrap servers, then TOPIC PARTITION BROKER FOLDER each. */
public final class AlterLogDirs {
    public static void main(String[] arguments) throws Exception {
        Map<TopicPartitionReplica, String> moves = new HashMap<>();
        for (int i = 1; i < arguments.length; i += 4) {
            int partition = Integer.parseInt(arguments[i + 1]);
            int broker = Integer.parseInt(arguments[i + 2]);
            moves.put(new TopicPartitionReplica(arguments[i], partition, broker), arguments[i + 3]);
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.alterReplicaLogDirs(moves).all().get();
            admin.describeReplicaLogDirs(moves.keySet()).all().get().forEach(
                (replica, info) -> System.out.println(replica.partition() + " " + info.getCurrentReplicaLogDir()));
        }
    }
}
