import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.SubscriptionPattern;

/** Releases 4.0 and later, which have the broker find the topics that a pattern means. */
final class Release extends LaterRelease {
    private final Consuming consuming;

    Release(String bootstrap, Consuming consuming) {
        super(bootstrap, consuming);
        this.consuming = consuming;
    }

    @Override
    void addTo(Map<String, Driver.Operation> operations) {
        super.addTo(operations);
        operations.put("subscribe_pattern", arguments -> {
            consuming.named(arguments).subscribe(new SubscriptionPattern(Wire.text(arguments, "pattern")));
            return null;
        });
    }

    @Override
    int countPartitions(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }
}
