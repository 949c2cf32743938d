import java.nio.file.Path;

/** One instance of the application with exactly_once_v2, until it is killed: BOOTSTRAP ID FOLDER PREFIX. */
public final class StreamsLoop {
    private static final int LOOK_MS = 200;

    private StreamsLoop() {}

    public static void main(String[] arguments) throws InterruptedException {
        Application instance = new Application(
            Wire.settings(arguments[0]),
            arguments[1],
            "exactly_once_v2",
            Path.of(arguments[2]),
            arguments[3],
            "classic",
            "localhost");
        while (!instance.hasFailed()) {
            Thread.sleep(LOOK_MS);
        }
        System.exit(1);
    }
}
