import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/** Between the JSON of the requests and replies and the classes of the clients. */
final class Wire {
    private Wire() {}

    /** Return whether an argument is given and not null. */
    static boolean has(JsonNode arguments, String name) {
        return arguments.hasNonNull(name);
    }

    static String text(JsonNode arguments, String name) {
        return arguments.get(name).asText();
    }

    static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    static Map<String, String> textsByName(JsonNode object) {
        Map<String, String> texts = new HashMap<>();
        if (object != null) {
            object.properties().forEach(field -> texts.put(field.getKey(), field.getValue().asText()));
        }
        return texts;
    }

    static TopicPartition partition(JsonNode arguments) {
        return new TopicPartition(text(arguments, "topic"), arguments.get("partition").asInt());
    }

    /** Return the settings of a client; a value is whatever Kafka's configuration parses. */
    static Properties settings(String bootstrap, Object... pairs) {
        Properties settings = new Properties();
        settings.setProperty("bootstrap.servers", bootstrap);
        for (int i = 0; i < pairs.length; i += 2) {
            settings.setProperty((String) pairs[i], String.valueOf(pairs[i + 1]));
        }
        return settings;
    }

    static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : text.asText().getBytes(StandardCharsets.ISO_8859_1);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.ISO_8859_1);
    }

    static ProducerRecord<byte[], byte[]> record(String topic, JsonNode record) {
        ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(
            topic,
            has(record, "partition") ? record.get("partition").asInt() : null,
            has(record, "timestamp") ? record.get("timestamp").asLong() : null,
            bytes(record.get("key")),
            bytes(record.get("value")));
        record.path("headers").forEach(header -> made.headers().add(header.get(0).asText(), bytes(header.get(1))));
        return made;
    }

    static Map<String, Object> record(ConsumerRecord<byte[], byte[]> record) {
        List<List<String>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<String> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(text(header.value()));
            headers.add(pair);
        }
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("topic", record.topic());
        shown.put("partition", record.partition());
        shown.put("offset", record.offset());
        shown.put("timestamp", record.timestamp());
        shown.put("key", text(record.key()));
        shown.put("value", text(record.value()));
        shown.put("headers", headers);
        return shown;
    }
}
