import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/** The operations of the admin client that every release with an admin client has. */
final class Topics {
    private final AdminClient admin;

    Topics(String bootstrap) {
        admin = AdminClient.create(Wire.settings(bootstrap));
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("create_topic", this::createTopic);
        operations.put("delete_topic", arguments ->
            admin.deleteTopics(List.of(Wire.text(arguments, "topic"))).all().get());
        operations.put("list_topics", none -> admin.listTopics().names().get());
        operations.put("describe_cluster", this::describeCluster);
        operations.put("topic_config", this::topicConfig);
    }

    /** Return the cluster's id, controller and [id, host, port] of its nodes. */
    private Object describeCluster(JsonNode none) throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        return Map.of(
            "cluster_id", cluster.clusterId().get(),
            "controller", cluster.controller().get().id(),
            "nodes", cluster.nodes().get().stream()
                .map(node -> List.<Object>of(node.id(), node.host(), node.port()))
                .collect(Collectors.toList()));
    }

    private Object createTopic(JsonNode arguments) throws Exception {
        NewTopic topic =
            new NewTopic(Wire.text(arguments, "topic"), arguments.path("partitions").asInt(1), (short) 1);
        topic.configs(Wire.textsByName(arguments.get("configs")));
        return admin.createTopics(List.of(topic)).all().get();
    }

    /** Return the value that is in force for a topic's setting. */
    private Object topicConfig(JsonNode arguments) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, Wire.text(arguments, "topic"));
        return admin.describeConfigs(List.of(resource)).all().get().get(resource)
            .get(Wire.text(arguments, "key")).value();
    }
}
