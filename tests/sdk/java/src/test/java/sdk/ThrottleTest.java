// Scalability targets (`--throttle`): the client's own retries get all the work done, at the pace of the target.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.Support.all;
import static sdk.Support.assertRefused;
import static sdk.Support.entity;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.http.policy.ExponentialBackoffOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ThrottleTest {
    private static final int TARGET = 40;
    private static final int COUNT = 100;
    private static final int CALLERS = 10;
    /** Some may come at once after a pause; the rest cannot come faster than the target. */
    private static final Duration SHORTEST = Duration.ofMillis(1000 * (COUNT - 10) / TARGET);
    /** The default policy with shorter pauses, and more of them in return. */
    private static final RetryOptions PATIENCE = new RetryOptions(new ExponentialBackoffOptions()
        .setMaxRetries(30).setBaseDelay(Duration.ofMillis(20)).setMaxDelay(Duration.ofMillis(200)));

    @TempDir
    private Path location;
    private OwnServer server;

    @BeforeEach
    void start() throws Exception {
        server = new OwnServer(location, "--throttle=partition=" + TARGET);
    }

    @AfterEach
    void stop() throws Exception {
        if (server != null) {
            server.close();
        }
    }

    private TableClient table(RetryOptions retries) {
        return new TableServiceClientBuilder().endpoint(server.tables).retryOptions(retries)
            .credential(new AzureNamedKeyCredential(OwnServer.ACCOUNT, OwnServer.KEY))
            .buildClient().createTable("people");
    }

    private static TableEntity numbered(String partition, int n) {
        return entity(partition, String.format("%03d", n), "n", n);
    }

    /** Runs `work` for 0 … count - 1, by several callers. Returns what each came to. */
    private static List<Future<Void>> together(int count, IntConsumer work) throws InterruptedException {
        ExecutorService callers = Executors.newFixedThreadPool(CALLERS);
        try {
            return callers.invokeAll(IntStream.range(0, count).mapToObj(n -> (Callable<Void>) () -> {
                work.accept(n);
                return null;
            }).toList());
        } finally {
            callers.shutdown();
        }
    }

    @Test
    void retriesGetAllTheWorkOfParallelCallersDone() throws Exception {
        TableClient table = table(PATIENCE);
        long started = System.nanoTime();
        for (Future<Void> result : together(COUNT, n -> table.createEntity(numbered("hot", n)))) {
            result.get();
        }
        Duration took = Duration.ofNanos(System.nanoTime() - started);
        assertTrue(took.compareTo(SHORTEST) > 0, took::toString);
        assertEquals(IntStream.range(0, COUNT).boxed().toList(),
            all(table).stream().map(found -> (Integer) found.getProperty("n")).toList());
    }

    @Test
    void retriesGetTransactionsDone() {
        TableClient table = table(PATIENCE);
        for (int first = 0; first < COUNT; first += 20) {
            table.submitTransaction(IntStream.range(first, first + 20).mapToObj(n ->
                new TableTransactionAction(TableTransactionActionType.CREATE, numbered("hot", n))).toList());
        }
        assertEquals(COUNT, all(table).size());
    }

    @Test
    void withoutRetriesTheServerSaysThatItIsBusyAndOtherPartitionsGoOn() throws Exception {
        TableClient table = table(Support.NO_RETRIES);
        int refusals = 0;
        for (Future<Void> result : together(COUNT, n -> table.createEntity(numbered("hot", n)))) {
            try {
                result.get();
            } catch (ExecutionException refusal) {
                assertRefused(503, "ServerBusy", () -> {
                    throw refusal.getCause();
                });
                refusals++;
            }
        }
        assertTrue(refusals > 0 && refusals < COUNT, refusals + " were refused");
        table.createEntity(numbered("calm", 0));
        assertEquals(COUNT - refusals + 1, all(table).size());
    }
}
