// A server of the test's own, for behaviour that options switch on.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

final class OwnServer implements AutoCloseable {
    static final String ACCOUNT = "devstoreaccount1";
    static final String KEY =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    private static final Pattern READY = Pattern.compile("(Table|Queue) service is successfully listening at (\\S+)");

    final String tables;
    final String queues;
    private final Process process;

    OwnServer(Path location, String... options) throws IOException {
        String program = System.getenv("LAZULITE_SERVER");
        assumeTrue(program != null, "LAZULITE_SERVER names the server's program; `cargo xtask test` sets it");
        List<String> command = new ArrayList<>(List.of(program, "serve", "--location", location.toString(),
            "--tablePort", "0", "--queuePort", "0", "--no-admin", "--silent"));
        command.addAll(List.of(options));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
        builder.environment().keySet().removeIf(name -> name.endsWith("_ACCOUNTS"));
        process = builder.start();
        String foundTables = null;
        String foundQueues = null;
        BufferedReader lines = process.inputReader();
        while (foundTables == null || foundQueues == null) {
            String line = lines.readLine();
            if (line == null) {
                throw new IOException("the server ended before it was ready");
            }
            Matcher ready = READY.matcher(line);
            if (ready.find()) {
                String endpoint = ready.group(2).replaceAll("/$", "") + "/" + ACCOUNT;
                if (ready.group(1).equals("Table")) {
                    foundTables = endpoint;
                } else {
                    foundQueues = endpoint;
                }
            }
        }
        tables = foundTables;
        queues = foundQueues;
    }

    /** As an operator does. The signal is SIGTERM. */
    @Override
    public void close() throws InterruptedException {
        process.destroy();
        assertEquals(0, process.waitFor(), "the server's exit code");
    }
}
