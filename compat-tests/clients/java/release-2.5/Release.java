import java.util.List;

/** Releases 2.5 to 3.0. */
final class Release extends LaterRelease {
    Release(String bootstrap, Consuming consuming) {
        super(bootstrap, consuming);
    }

    @Override
    int countPartitions(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).all().get().get(topic).partitions().size();
    }
}
