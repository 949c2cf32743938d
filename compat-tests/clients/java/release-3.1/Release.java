import java.util.List;

/** Releases 3.1 and later, which name a topic by its id too. */
final class Release extends LaterRelease {
    Release(String bootstrap, Consuming consuming) {
        super(bootstrap, consuming);
    }

    @Override
    int countPartitions(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }
}
