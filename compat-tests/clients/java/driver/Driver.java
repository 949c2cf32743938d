import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Kafka's Java clients: the loop of the driver, as `drivers/serving.py` describes it. The argument is the broker's
 * address.
 *
 * What all releases offer is in this folder. `Release`, of which there is one for each age of the API, adds the rest.
 */
public final class Driver {
    /** One operation: takes the arguments of the request, returns what Jackson writes as the result. */
    interface Operation {
        Object run(JsonNode arguments) throws Exception;
    }

    private static final short UNKNOWN = -1;

    private Driver() {}

    public static void main(String[] arguments) throws Exception {
        serve(operations(arguments[0]));
    }

    /** Answer requests until stdin ends. What the clients print goes to stderr. */
    static void serve(Map<String, Operation> operations) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = json.readTree(line);
            ObjectNode reply = json.createObjectNode().set("id", request.get("id"));
            try {
                Operation operation = operations.getOrDefault(request.get("operation").asText(), Driver::refuse);
                Object result = operation.run(request.get("arguments"));
                reply.set("result", json.valueToTree(result));
            } catch (Throwable thrown) {
                thrown.printStackTrace();
                reply.set("error", error(json, thrown));
            }
            replies.write((json.writeValueAsString(reply) + "\n").getBytes(StandardCharsets.UTF_8));
            replies.flush();
        }
        System.exit(0);
    }

    /** Return the operations of clients of the broker at `bootstrap`, by name. */
    static Map<String, Operation> operations(String bootstrap) {
        Map<String, Operation> operations = new HashMap<>();
        Producing producing = new Producing(bootstrap);
        Consuming consuming = new Consuming(bootstrap);
        producing.addTo(operations);
        consuming.addTo(operations);
        new Topics(bootstrap).addTo(operations);
        new Release(bootstrap, consuming).addTo(operations);
        operations.put("reset", none -> {
            producing.reset();
            consuming.reset();
            return null;
        });
        return operations;
    }

    private static Object refuse(JsonNode arguments) {
        throw new UnsupportedOperationException("this release has no such operation");
    }

    private static ObjectNode error(ObjectMapper json, Throwable thrown) {
        Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
        Errors error = Errors.forException(cause);
        ObjectNode described = json.createObjectNode().put("kind", cause.getClass().getSimpleName());
        if (error.code() == UNKNOWN) {
            described.putNull("code");
        } else {
            described.put("code", error.code());
        }
        return described.put("message", String.valueOf(cause.getMessage()));
    }
}
