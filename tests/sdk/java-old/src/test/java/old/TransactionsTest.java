// Batches as the older client writes them: `MERGE` beside `X-HTTP-Method: MERGE`, absolute URLs, and an echo on request.

package old;

import static old.Support.OLD_ETAG;
import static old.Support.assertRefused;
import static old.Support.contents;
import static old.Support.entity;
import static old.Support.get;
import static old.Support.missingTable;
import static old.Support.newTable;
import static old.Support.refusal;
import static old.Support.values;
import static old.Support.withEtag;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableEntity;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableResult;
import com.microsoft.azure.storage.table.TableServiceException;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TransactionsTest {
    enum Write {
        INSERT(TableOperation::insert, Map.of("new", "2")),
        REPLACE(TableOperation::replace, Map.of("new", "2")),
        MERGE(TableOperation::merge, Map.of("old", "1", "new", "2")),
        INSERT_OR_REPLACE(TableOperation::insertOrReplace, Map.of("new", "2")),
        INSERT_OR_MERGE(TableOperation::insertOrMerge, Map.of("old", "1", "new", "2")),
        DELETE(TableOperation::delete, null);

        final Function<TableEntity, TableOperation> operation;
        /** What an entity with `old` has after `new` was written. */
        final Map<String, String> expected;

        Write(Function<TableEntity, TableOperation> operation, Map<String, String> expected) {
            this.operation = operation;
            this.expected = expected;
        }

        TableOperation of(TableEntity entity) {
            return operation.apply(entity);
        }
    }

    private static TableBatchOperation batchOf(TableOperation... operations) {
        TableBatchOperation batch = new TableBatchOperation();
        batch.addAll(List.of(operations));
        return batch;
    }

    /** Expects failure at the index that the message names, and an unchanged table. */
    private static void assertRolledBack(
            CloudTable table, int status, String code, int index, TableOperation... operations) {
        Map<String, Map<String, String>> before = contents(table);
        TableBatchOperation batch = batchOf(operations);
        assertRefused(status, code, index + ":", () -> table.execute(batch));
        assertInstanceOf(TableServiceException.class, refusal(() -> table.execute(batch)));
        assertEquals(before, contents(table));
    }

    @ParameterizedTest
    @EnumSource
    void oneOperationAlone(Write write) throws Exception {
        CloudTable table = newTable();
        if (write != Write.INSERT) {
            table.execute(TableOperation.insert(entity("a", "old", 1)));
        }
        List<TableResult> results = table.execute(batchOf(write.of(entity("a", "new", 2))));
        assertEquals(1, results.size());
        assertEquals(204, results.get(0).getHttpStatusCode());
        if (write == Write.DELETE) {
            assertNull(get(table, "a"));
        } else {
            assertEquals(write.expected, values(get(table, "a")));
            assertEquals(get(table, "a").getEtag(), results.get(0).getEtag());
        }
    }

    @Test
    void retrieveInABatchReturnsTheEntity() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("it's 100%", "text", "Grüße", "n", 1)));
        TableBatchOperation batch = new TableBatchOperation();
        batch.retrieve("p", "it's 100%", DynamicTableEntity.class);
        List<TableResult> results = table.execute(batch);
        assertEquals(200, results.get(0).getHttpStatusCode());
        DynamicTableEntity found = results.get(0).getResultAsType();
        assertEquals(Map.of("text", "Grüße", "n", "1"), values(found));
        assertEquals(get(table, "it's 100%").getEtag(), found.getEtag());
    }

    @Test
    void retrieveOfAMissingEntityInABatchFindsNothing() throws Exception {
        TableBatchOperation batch = new TableBatchOperation();
        batch.retrieve("p", "missing", DynamicTableEntity.class);
        List<TableResult> results = newTable().execute(batch);
        assertEquals(404, results.get(0).getHttpStatusCode());
        assertNull(results.get(0).getResult());
    }

    @Test
    void allKindsOfOperationInOneBatch() throws Exception {
        CloudTable table = newTable();
        TableBatchOperation batch = new TableBatchOperation();
        for (Write write : Write.values()) {
            if (write != Write.INSERT) {
                table.execute(TableOperation.insert(entity(write.name(), "old", 1)));
            }
            batch.add(write.of(entity(write.name(), "new", 2)));
        }
        List<TableResult> results = table.execute(batch);
        assertEquals(List.of(204, 204, 204, 204, 204, 204), results.stream().map(TableResult::getHttpStatusCode).toList());
        for (Write write : Write.values()) {
            DynamicTableEntity found = get(table, write.name());
            assertEquals(write.expected, found == null ? null : values(found), write.name());
            if (found != null) {
                assertEquals(found.getEtag(), results.get(write.ordinal()).getEtag(), write.name());
            }
        }
    }

    @Test
    void allKindsExceptMergesInOneBatch() throws Exception {
        CloudTable table = newTable();
        TableBatchOperation batch = new TableBatchOperation();
        for (Write write : new Write[] {Write.INSERT, Write.REPLACE, Write.INSERT_OR_REPLACE, Write.DELETE}) {
            if (write != Write.INSERT) {
                table.execute(TableOperation.insert(entity(write.name(), "old", 1)));
            }
            batch.add(write.of(entity(write.name(), "new", 2)));
        }
        table.execute(batch);
        assertEquals(List.of("INSERT", "INSERT_OR_REPLACE", "REPLACE"), List.copyOf(contents(table).keySet()));
    }

    @Test
    void insertsInABatchReturnTheEntityOnRequest() throws Exception {
        CloudTable table = newTable();
        TableBatchOperation batch = new TableBatchOperation();
        batch.insert(entity("a", "text", "Grüße\r\n'"), true);
        batch.insert(entity("b", "n", 2));
        batch.insert(entity("c", "n", 3), true);
        List<TableResult> results = table.execute(batch);
        assertEquals(List.of(201, 204, 201), results.stream().map(TableResult::getHttpStatusCode).toList());
        assertEquals(Map.of("text", "Grüße\r\n'"), values(results.get(0).getResultAsType()));
        assertEquals(Map.of("n", "3"), values(results.get(2).getResultAsType()));
    }

    @Test
    void aHundredOperations() throws Exception {
        CloudTable table = newTable();
        TableBatchOperation batch = new TableBatchOperation();
        for (int n = 0; n < 100; n++) {
            batch.insertOrReplace(entity(String.format("%03d", n), "n", n));
        }
        assertEquals(100, table.execute(batch).size());
        assertEquals(100, contents(table).size());
    }

    @ParameterizedTest
    @EnumSource(names = {"REPLACE", "MERGE", "DELETE"})
    void anOldEtagFailsAtItsIndexAndTheCurrentOnePasses(Write write) throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("a", "n", 1)));
        String current = table.execute(TableOperation.insert(entity("b", "n", 1))).getEtag();
        Function<String, TableOperation[]> operations = etag -> new TableOperation[] {
            TableOperation.insertOrReplace(entity("a", "n", 2)), write.of(withEtag(entity("b", "n", 2), etag)),
        };
        assertRolledBack(table, 412, "UpdateConditionNotSatisfied", 1, operations.apply(OLD_ETAG));
        table.execute(batchOf(operations.apply(current)));
        assertEquals(Map.of("n", "2"), values(get(table, "a")));
        assertEquals(write == Write.DELETE, get(table, "b") == null);
    }

    @ParameterizedTest
    @EnumSource(names = {"REPLACE", "MERGE", "DELETE"})
    void aMissingEntityFailsAtItsIndex(Write write) throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("a", "n", 1)));
        assertRolledBack(table, 404, "ResourceNotFound", 1,
            TableOperation.replace(entity("a", "n", 2)), write.of(entity("missing", "n", 2)));
    }

    @Test
    void anInsertOfAnExistingEntityFailsAtItsIndex() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("taken")));
        assertRolledBack(table, 409, "EntityAlreadyExists", 2, TableOperation.insert(entity("a")),
            TableOperation.insert(entity("b")), TableOperation.insert(entity("taken")));
    }

    @Test
    void theSameRowTwiceIsRefused() throws Exception {
        CloudTable table = newTable();
        assertRolledBack(table, 400, "InvalidDuplicateRow", 1, TableOperation.insert(entity("a")),
            TableOperation.insertOrReplace(entity("a", "n", 1)));
    }

    @Test
    void aValueThatIsTooLargeFailsAtItsIndex() throws Exception {
        CloudTable table = newTable();
        assertRolledBack(table, 400, "PropertyValueTooLarge", 1, TableOperation.insert(entity("a")),
            TableOperation.insert(entity("b", "text", "x".repeat(32769))));
    }

    @Test
    void aBatchOnAMissingTableIsNotFound() throws Exception {
        CloudTable table = missingTable();
        TableBatchOperation batch = batchOf(TableOperation.insert(entity("a")), TableOperation.insert(entity("b")));
        assertRefused(404, "TableNotFound", "0:The table specified does not exist.", () -> table.execute(batch));
    }

    @Test
    void valuesThatLookLikeAPartOfABatchStayValues() throws Exception {
        CloudTable table = newTable();
        String text = "--batch_x\r\n--changeset_x--\nHTTP/1.1 500\r\n\r\n{} Grüße";
        table.execute(batchOf(TableOperation.insert(entity("a", "text", text)),
            TableOperation.insertOrReplace(entity("b", "text", text))));
        assertEquals(Map.of("text", text), values(get(table, "a")));
        assertEquals(Map.of("text", text), values(get(table, "b")));
    }
}
