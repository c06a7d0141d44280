// Transactions: all or nothing, and the index of the operation that failed.

package sdk;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_REPLACE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_REPLACE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static sdk.Support.SERVICE;
import static sdk.Support.all;
import static sdk.Support.assertRefused;
import static sdk.Support.entity;
import static sdk.Support.freshName;
import static sdk.Support.newTable;
import static sdk.Support.plain;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.azure.data.tables.models.TableTransactionResult;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class TransactionsTest {
    private final TableClient table = newTable();

    private static TableTransactionAction action(TableTransactionActionType type, String row, Object... values) {
        return new TableTransactionAction(type, entity("p", row, values));
    }

    private static String row(int n) {
        return String.format("%03d", n);
    }

    private void insert(String row, Object... values) {
        table.createEntity(entity("p", row, values));
    }

    /** Everything in the table with etags, which a rollback must leave unchanged. */
    private Map<String, Object> contents() {
        Map<String, Object> rows = new TreeMap<>();
        all(table).forEach(entity -> rows.put(entity.getRowKey(), List.of(entity.getETag(), plain(entity))));
        return rows;
    }

    private Map<String, Object> values() {
        Map<String, Object> rows = new TreeMap<>();
        all(table).forEach(entity -> rows.put(entity.getRowKey(), plain(entity)));
        return rows;
    }

    /**
     * Expects failure at `index` (null where the service gives none) and an unchanged table. The SDK reports the
     * code and the index of the failed operation, but not its status.
     */
    private void assertRolledBack(Integer index, String code, TableTransactionAction... actions) {
        Map<String, Object> before = contents();
        TableTransactionFailedException failure = assertThrows(TableTransactionFailedException.class,
            () -> table.submitTransaction(List.of(actions)));
        assertEquals(code, failure.getValue().getErrorCode().toString());
        assertEquals(index, failure.getFailedTransactionActionIndex());
        assertEquals(before, contents());
    }

    @Test
    void allKindsOfOperationInOneTransaction() {
        for (String row : List.of("update-merge", "update-replace", "upsert-merge", "upsert-replace", "delete")) {
            insert(row, "old", 1);
        }
        TableTransactionResult answer = table.submitTransaction(List.of(
            action(CREATE, "create", "new", 2),
            action(UPDATE_MERGE, "update-merge", "new", 2),
            action(UPDATE_REPLACE, "update-replace", "new", 2),
            action(UPSERT_MERGE, "upsert-merge", "new", 2),
            action(UPSERT_REPLACE, "upsert-replace", "new", 2),
            action(UPSERT_MERGE, "upsert-merge-absent", "new", 2),
            action(UPSERT_REPLACE, "upsert-replace-absent", "new", 2),
            action(DELETE, "delete")));
        Map<String, Integer> both = Map.of("old", 1, "new", 2);
        Map<String, Integer> single = Map.of("new", 2);
        assertEquals(Map.of("create", single, "update-merge", both, "update-replace", single, "upsert-merge", both,
            "upsert-replace", single, "upsert-merge-absent", single, "upsert-replace-absent", single), values());
        assertEquals(Collections.nCopies(8, 204),
            answer.getTransactionActionResponses().stream().map(part -> part.getStatusCode()).toList());
    }

    @Test
    void aHundredInserts() {
        List<TableTransactionAction> actions =
            IntStream.range(0, 100).mapToObj(n -> action(CREATE, row(n), "n", n)).toList();
        assertEquals(100, table.submitTransaction(actions).getTransactionActionResponses().size());
        assertEquals(IntStream.range(0, 100).boxed().toList(),
            all(table).stream().map(found -> found.getProperty("n")).toList());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 50, 99})
    void anInsertOfAnExistingEntityFailsAtItsIndex(int index) {
        insert("taken", "n", 1);
        assertRolledBack(index, "EntityAlreadyExists", IntStream.range(0, 100)
            .mapToObj(n -> action(CREATE, n == index ? "taken" : row(n))).toArray(TableTransactionAction[]::new));
    }

    @ParameterizedTest
    @EnumSource(names = {"UPDATE_MERGE", "UPDATE_REPLACE"})
    void anUpdateOfAMissingEntityFailsAtItsIndex(TableTransactionActionType type) {
        insert("there", "n", 1);
        assertRolledBack(2, "ResourceNotFound",
            action(type, "there", "n", 2), action(UPSERT_MERGE, "new", "n", 2), action(type, "missing", "n", 2));
    }

    @Test
    void aDeleteOfAMissingEntityFailsAtItsIndex() {
        insert("there", "n", 1);
        assertRolledBack(1, "ResourceNotFound",
            action(DELETE, "there"), action(DELETE, "missing"), action(CREATE, "new"));
    }

    @ParameterizedTest
    @EnumSource(names = {"UPDATE_MERGE", "UPDATE_REPLACE", "DELETE"})
    void anOldEtagFailsAtItsIndex(TableTransactionActionType type) {
        insert("a", "n", 1);
        insert("b", "n", 1);
        TableEntity stale = table.getEntity("p", "b");
        table.updateEntity(entity("p", "b", "n", 2));
        assertRolledBack(1, "UpdateConditionNotSatisfied",
            action(UPSERT_REPLACE, "a", "n", 3), new TableTransactionAction(type, stale, true));
    }

    @Test
    void rightEtagsLetItPass() {
        insert("a", "n", 1);
        insert("b", "n", 1);
        table.submitTransaction(List.of(
            new TableTransactionAction(UPDATE_REPLACE, table.getEntity("p", "a").addProperty("n", 2), true),
            new TableTransactionAction(DELETE, table.getEntity("p", "b"), true)));
        assertEquals(Map.of("a", Map.of("n", 2)), values());
    }

    @Test
    void theSameRowTwiceIsRefused() {
        insert("there", "n", 1);
        assertRolledBack(2, "InvalidDuplicateRow",
            action(CREATE, "a"), action(UPSERT_MERGE, "there", "n", 2), action(UPDATE_MERGE, "there", "n", 3));
    }

    @Test
    void mixedPartitionsAreRefused() {
        insert("there", "n", 1);
        assertRolledBack(2, "CommandsInBatchActOnDifferentPartitions",
            action(CREATE, "a"), action(UPSERT_MERGE, "there", "n", 2),
            new TableTransactionAction(CREATE, entity("q", "b")));
    }

    @Test
    void moreThanAHundredOperationsAreRefused() {
        assertRolledBack(99, "InvalidInput",
            IntStream.range(0, 101).mapToObj(n -> action(CREATE, row(n))).toArray(TableTransactionAction[]::new));
    }

    @Test
    void aValueThatIsTooLargeFailsAtItsIndex() {
        insert("there", "n", 1);
        assertRolledBack(1, "PropertyValueTooLarge",
            action(UPSERT_MERGE, "there", "n", 2), action(CREATE, "big", "text", "x".repeat(32769)));
    }

    @Test
    void aBadKeyFailsAtItsIndex() {
        assertRolledBack(1, "OutOfRangeInput", action(CREATE, "a"), action(CREATE, "b/c"));
    }

    @Test
    void aFailingSingleOperationIsReportedWithoutANumber() {
        insert("taken", "n", 1);
        assertRolledBack(null, "EntityAlreadyExists", action(CREATE, "taken", "n", 2));
    }

    @Test
    void aTransactionOnAMissingTableIsNotFound() {
        TableClient missing = SERVICE.getTableClient(freshName());
        TableTransactionFailedException failure = assertThrows(TableTransactionFailedException.class,
            () -> missing.submitTransaction(List.of(action(CREATE, "a"), action(CREATE, "b"))));
        assertEquals("TableNotFound", failure.getValue().getErrorCode().toString());
        assertEquals(0, failure.getFailedTransactionActionIndex());
    }

    @Test
    void aBodyAbove4MibIsTooLarge() {
        String text = "x".repeat(32768);
        List<TableTransactionAction> actions =
            IntStream.range(0, 70).mapToObj(n -> action(CREATE, row(n), "a", text, "b", text)).toList();
        assertRefused(413, "RequestBodyTooLarge", () -> table.submitTransaction(actions));
        assertEquals(List.of(), all(table));
    }

    @Test
    void valuesWithBracesAndBoundariesDoNotConfuseAnybody() {
        String text = "{}--changeset_x\r\n--batch_x--\r\nHTTP/1.1 500 {\"odata.error\":{}}";
        table.submitTransaction(List.of(action(CREATE, "a", "text", text), action(UPSERT_MERGE, "b{}", "text", text)));
        assertEquals(Map.of("a", Map.of("text", text), "b{}", Map.of("text", text)), values());
    }

    @Test
    void afterAFailureTheSameRowsCanBeWritten() {
        assertRolledBack(1, "ResourceNotFound", action(CREATE, "a"), action(DELETE, "missing"));
        table.submitTransaction(new ArrayList<>(List.of(action(CREATE, "a", "n", 1))));
        assertEquals(Map.of("a", Map.of("n", 1)), values());
    }
}
