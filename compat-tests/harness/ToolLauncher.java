import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs command line tools of Kafka one after the other in one JVM, as their main methods, unchanged.
 *
 * The arguments are the jars that hold the tools; the class path holds the rest. A request is a line of fields in
 * Base64, separated by spaces: the main class, the standard input, the arguments. The answer is a line too: the exit
 * status, the standard output and the standard error.
 *
 * Tools keep state in static fields, so each run gets classes of its own.
 */
public final class ToolLauncher {
    /** Thrown where a tool would end the JVM. */
    private static final class ToolExit extends Error {
        ToolExit() {
            super("exit", null, false, false);
        }
    }

    /** What the tool ended with: its first call of exit, since some tools catch everything and then call it again. */
    private static Integer exitStatus;

    /** What the tool asked to run when the JVM ends; a producer flushes there. */
    private static final List<Runnable> shutdownHooks = new ArrayList<>();

    /** A stream whose end can be exchanged; Scala and loggers keep the stream that they found first. */
    private static final class Redirect extends OutputStream {
        volatile OutputStream end = OutputStream.nullOutputStream();

        @Override
        public void write(int b) throws java.io.IOException {
            end.write(b);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws java.io.IOException {
            end.write(bytes, offset, length);
        }
    }

    public static void main(String[] jars) throws Exception {
        List<URL> toolJars = new ArrayList<>();
        for (String jar : jars) {
            toolJars.add(new File(jar).toURI().toURL());
        }
        InputStream requests = System.in;
        PrintStream answers = System.out;
        Redirect out = new Redirect();
        Redirect err = new Redirect();
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        Exit.setExitProcedure((status, message) -> {
            if (exitStatus == null) {
                exitStatus = status;
                System.out.flush();
                System.err.flush();
                out.end = OutputStream.nullOutputStream();
                err.end = OutputStream.nullOutputStream();
            }
            throw new ToolExit();
        });
        Exit.setShutdownHookAdder((name, hook) -> shutdownHooks.add(hook));

        BufferedReader lines = new BufferedReader(new InputStreamReader(requests, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split(" ", -1);
            ByteArrayOutputStream standardOut = new ByteArrayOutputStream();
            ByteArrayOutputStream standardErr = new ByteArrayOutputStream();
            out.end = standardOut;
            err.end = standardErr;
            System.setIn(new ByteArrayInputStream(decode(fields[1])));
            String[] arguments = new String[fields.length - 2];
            for (int i = 0; i < arguments.length; i++) {
                arguments[i] = new String(decode(fields[i + 2]), StandardCharsets.UTF_8);
            }
            String main = new String(decode(fields[0]), StandardCharsets.UTF_8);
            exitStatus = null;
            int status = run(toolJars.toArray(new URL[0]), main, arguments);
            System.out.flush();
            System.err.flush();
            answers.println(status + " " + encode(standardOut) + " " + encode(standardErr));
            answers.flush();
        }
    }

    private static int run(URL[] jars, String main, String[] arguments) throws Exception {
        try (URLClassLoader tools = new URLClassLoader(jars, ToolLauncher.class.getClassLoader())) {
            Thread.currentThread().setContextClassLoader(tools);
            tools.loadClass(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return exitStatus == null ? 0 : exitStatus;
        } catch (InvocationTargetException e) {
            if (exitStatus != null) {
                return exitStatus;
            }
            e.getCause().printStackTrace();
            return 1;
        } finally {
            shutdownHooks.forEach(Runnable::run);
            shutdownHooks.clear();
            Thread.currentThread().setContextClassLoader(ToolLauncher.class.getClassLoader());
        }
    }

    private static byte[] decode(String field) {
        return Base64.getDecoder().decode(field);
    }

    private static String encode(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
