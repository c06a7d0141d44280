// Parallel use: with many requests in flight nothing is lost and nothing is invented.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.Support.all;
import static sdk.Support.entity;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.stored;

import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class ParallelTest {
    private static final ExecutorService THREADS = Executors.newFixedThreadPool(8);

    private final TableClient table = newTable();

    @AfterAll
    static void stop() {
        THREADS.shutdown();
    }

    /** Runs `work` for 0 … count - 1 in parallel and returns the results in order. */
    private static <T> List<T> together(int count, IntFunction<T> work) throws Exception {
        List<Callable<T>> calls =
            IntStream.range(0, count).mapToObj(n -> (Callable<T>) () -> work.apply(n)).toList();
        List<Future<T>> futures = THREADS.invokeAll(calls);
        List<T> results = new java.util.ArrayList<>();
        for (Future<T> future : futures) {
            results.add(future.get());
        }
        return results;
    }

    /** The status of a refused call; 0 for one that succeeded. */
    private static int status(Runnable call) {
        try {
            call.run();
            return 0;
        } catch (TableServiceException refusal) {
            return refusal.getResponse().getStatusCode();
        }
    }

    @Test
    void insertsAndReadsInFlightTogether() throws Exception {
        List<Integer> expected = IntStream.range(0, 300).boxed().toList();
        assertEquals(expected, together(300, n -> {
            String partition = "p" + n % 7;
            table.createEntity(entity(partition, String.valueOf(n), "n", n));
            return table.getEntity(partition, String.valueOf(n)).getProperty("n");
        }));
        assertEquals(expected, all(table).stream().map(found -> (Integer) found.getProperty("n")).sorted().toList());
    }

    @Test
    void ofInsertsOfTheSameEntityOneWins() throws Exception {
        List<Integer> statuses = together(40, n -> status(() -> table.createEntity(one("winner", n))));
        assertEquals(Map.of(0, 1L, 409, 39L),
            statuses.stream().collect(Collectors.groupingBy(status -> status, Collectors.counting())));
        assertEquals(Map.of("winner", statuses.indexOf(0)), stored(table));
    }

    @Test
    void countingWithEtagsLosesNoUpdate() throws Exception {
        table.createEntity(one("count", 0));
        together(80, n -> {
            for (;;) {
                TableEntity entity = table.getEntity("p", "r");
                entity.addProperty("count", (Integer) entity.getProperty("count") + 1);
                int status = status(() -> table.updateEntityWithResponse(
                    entity, TableEntityUpdateMode.REPLACE, true, null, Context.NONE));
                if (status != 412) {
                    return status;
                }
            }
        });
        assertEquals(Map.of("count", 80), stored(table));
    }

    @Test
    void mergesOfDifferentPropertiesAllStay() throws Exception {
        together(100, n -> status(() -> table.upsertEntity(one("p" + n, n))));
        Map<String, Object> expected = new HashMap<>();
        IntStream.range(0, 100).forEach(n -> expected.put("p" + n, n));
        assertEquals(expected, stored(table));
    }

    @Test
    void readersSeeAllOfATransactionOrNothing() throws Exception {
        write(0);
        List<Boolean> whole = together(60, n -> {
            if (n % 2 == 1) {
                write(n);
                return true;
            }
            List<TableEntity> found = all(table);
            return found.size() == 20 && found.stream().map(one -> one.getProperty("n")).distinct().count() == 1;
        });
        assertTrue(whole.stream().allMatch(seen -> seen));
    }

    private void write(int n) {
        table.submitTransaction(IntStream.range(0, 20).mapToObj(row -> new TableTransactionAction(
            TableTransactionActionType.UPSERT_REPLACE, entity("p", String.format("%02d", row), "n", n))).toList());
    }
}
