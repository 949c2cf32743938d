import java.util.Map;

/** The driver of the Java clients, and beside it share consumers and what the admin client does with share groups. */
public final class ShareDriver {
    private ShareDriver() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Driver.Operation> operations = Driver.operations(arguments[0]);
        Driver.Operation resetClients = operations.get("reset");
        Sharing sharing = new Sharing(arguments[0]);
        sharing.addTo(operations);
        new ShareGroups(arguments[0]).addTo(operations);
        new Transactions(arguments[0]).addTo(operations);
        operations.put("reset", none -> {
            sharing.reset();
            return resetClients.run(none);
        });
        Driver.serve(operations);
    }
}
