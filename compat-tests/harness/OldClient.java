import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * The Java client of long ago, by the calls that all its releases have.
 *
 * <p>produce BOOTSTRAP TOPIC CODEC VALUE... prints the offset of each value; read BOOTSTRAP TOPIC OFFSET COUNT prints
 * the offset and value of each record. Keys are the values' first characters; a value "-" is null.
 */
public final class OldClient {
    private static final long DEADLINE_MS = 30_000;

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[1]);
        if (arguments[0].equals("produce")) {
            produce(properties, arguments);
        } else {
            read(properties, new TopicPartition(arguments[2], 0), arguments);
        }
    }

    private static void produce(Properties properties, String[] arguments) throws Exception {
        String serializer = "org.apache.kafka.common.serialization.StringSerializer";
        properties.put("key.serializer", serializer);
        properties.put("value.serializer", serializer);
        properties.put("compression.type", arguments[3]);
        properties.put("linger.ms", "50");
        properties.put("acks", "all");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int index = 4; index < arguments.length; index++) {
                String value = arguments[index].equals("-") ? null : arguments[index];
                sent.add(producer.send(new ProducerRecord<>(arguments[2], arguments[index].substring(0, 1), value)));
            }
            for (Future<RecordMetadata> one : sent) {
                System.out.println(one.get(DEADLINE_MS, TimeUnit.MILLISECONDS).offset());
            }
        }
    }

    private static void read(Properties properties, TopicPartition partition, String[] arguments) {
        String deserializer = "org.apache.kafka.common.serialization.StringDeserializer";
        properties.put("key.deserializer", deserializer);
        properties.put("value.deserializer", deserializer);
        properties.put("group.id", "old");
        properties.put("enable.auto.commit", "false");
        int left = Integer.parseInt(arguments[4]);
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, Long.parseLong(arguments[3]));
            while (left > 0 && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(100)) {
                    System.out.println(record.offset() + " " + record.key() + " " + record.value());
                    left--;
                }
            }
        }
    }
}
