import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Records in transactions. */
final class Transactions {
    private final String bootstrap;

    Transactions(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void addTo(Map<String, Driver.Operation> operations) {
        operations.put("produce_transaction", this::produce);
    }

    /** Produce records in one transaction, and commit it or abort it. */
    private Object produce(JsonNode arguments) {
        String topic = Wire.text(arguments, "topic");
        Properties settings = Wire.settings(bootstrap, "transactional.id", topic);
        try (KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (JsonNode record : arguments.get("records")) {
                producer.send(Wire.record(topic, record));
            }
            producer.flush();
            if (arguments.get("commit").asBoolean()) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        return null;
    }
}
