import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;

/** The driver of the Java clients, and beside it the instances of a Kafka Streams application, by name. */
public final class StreamsDriver {
    private static final int TIMEOUT_MS = 80_000;
    private static final int PAUSE_MS = 50;

    private final String bootstrap;
    private final Map<String, Application> instances = new HashMap<>();

    private StreamsDriver(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Driver.Operation> operations = Driver.operations(arguments[0]);
        StreamsDriver driver = new StreamsDriver(arguments[0]);
        driver.addTo(operations);
        Driver.serve(operations);
    }

    private void addTo(Map<String, Driver.Operation> operations) {
        Driver.Operation resetClients = operations.get("reset");
        operations.put("start_instance", arguments -> {
            Application instance = new Application(
                Wire.settings(bootstrap),
                Wire.text(arguments, "application"),
                Wire.text(arguments, "guarantee"),
                Path.of(Wire.text(arguments, "folder")),
                Wire.text(arguments, "prefix"),
                Wire.text(arguments, "protocol"),
                Wire.text(arguments, "name"));
            instances.put(Wire.text(arguments, "name"), instance);
            return null;
        });
        operations.put("settle_instances", this::settle);
        operations.put("await_totals", this::awaitTotals);
        operations.put("held", arguments -> named(arguments).isRunning() ? named(arguments).assignedPartitions() : 0);
        operations.put("standby_tasks", arguments -> named(arguments).standbyTasks());
        operations.put("shares", arguments -> named(arguments).shares());
        operations.put("restored", arguments -> named(arguments).restored());
        operations.put("stop_instance", arguments -> {
            instances.remove(Wire.text(arguments, "name")).close();
            return null;
        });
        operations.put("reset", none -> {
            instances.values().forEach(Application::close);
            instances.clear();
            return resetClients.run(none);
        });
    }

    /** Wait until all run, each has work and all process `partitions` together; return how many each has. */
    private Object settle(JsonNode arguments) throws Exception {
        int wanted = arguments.get("partitions").asInt();
        long end = System.currentTimeMillis() + TIMEOUT_MS;
        while (true) {
            Map<String, Integer> held = new TreeMap<>();
            boolean running = true;
            for (String name : Wire.texts(arguments.get("names"))) {
                held.put(name, instances.get(name).assignedPartitions());
                running &= instances.get(name).isRunning();
            }
            int together = held.values().stream().mapToInt(Integer::intValue).sum();
            if (running && together == wanted && !held.containsValue(0)) {
                return held;
            }
            pause(end, held);
        }
    }

    /** Wait until the stores of the instances together hold `totals`, a sum for each city, and return it. */
    private Object awaitTotals(JsonNode arguments) throws Exception {
        Map<String, Long> wanted = new TreeMap<>();
        Wire.textsByName(arguments.get("totals")).forEach((city, total) -> wanted.put(city, Long.valueOf(total)));
        long end = System.currentTimeMillis() + TIMEOUT_MS;
        while (true) {
            Map<String, Long> totals = new TreeMap<>();
            for (String name : Wire.texts(arguments.get("names"))) {
                totals.putAll(instances.get(name).totals());
            }
            if (totals.equals(wanted)) {
                return totals;
            }
            pause(end, totals);
        }
    }

    private static void pause(long end, Object seen) throws Exception {
        if (System.currentTimeMillis() > end) {
            throw new TimeoutException("so far: " + seen);
        }
        Thread.sleep(PAUSE_MS);
    }

    private Application named(JsonNode arguments) {
        return instances.get(Wire.text(arguments, "name"));
    }
}
