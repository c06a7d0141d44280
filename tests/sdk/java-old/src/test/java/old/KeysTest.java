// Keys that need escaping: in the path, in a filter, in a part of a batch and in a continuation token.

package old;

import static old.Support.all;
import static old.Support.assertRefused;
import static old.Support.contents;
import static old.Support.entityIn;
import static old.Support.get;
import static old.Support.newTable;
import static old.Support.values;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.microsoft.azure.storage.ResultContinuation;
import com.microsoft.azure.storage.ResultSegment;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableQuery;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeysTest {
    /** Without a combining accent: the client composes it in addresses, and so asks for another key. */
    static List<String> keys() {
        return List.of("it's", "''", "'", "100%", "%25", "%2F", "a b", "a+b", "a&b=c", "a,b", "(a)", "a;b", "a:b",
            "a@b", "a$b", "a=b", "a!b", "a*b", "~a", "\"a\"", "<a>", "{a}", "[a]", "a|b", "a^b", "`a`", "Grüße", "世界",
            "🙂", "é", "a\u00a0b", " a ", ".", "..", "");
    }

    private static void check(String key, boolean inBatch) throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entityIn(key, key, "n", 1)));
        assertEquals(Map.of("n", "1"), values(get(table, key, key)));
        if (inBatch) {
            TableBatchOperation batch = new TableBatchOperation();
            batch.merge(entityIn(key, key, "m", 2));
            table.execute(batch);
            batch.clear();
            batch.replace(entityIn(key, key, "n", 2));
            table.execute(batch);
        } else {
            table.execute(TableOperation.merge(entityIn(key, key, "m", 2)));
            table.execute(TableOperation.replace(entityIn(key, key, "n", 2)));
        }
        String partition = TableQuery.generateFilterCondition("PartitionKey", "eq", key);
        String row = TableQuery.generateFilterCondition("RowKey", "eq", key);
        String filter = TableQuery.combineFilters(partition, "and", row);
        List<DynamicTableEntity> found = all(table, TableQuery.from(DynamicTableEntity.class).where(filter));
        assertEquals(1, found.size());
        assertEquals(key, found.get(0).getPartitionKey());
        assertEquals(key, found.get(0).getRowKey());
        assertEquals(Map.of("n", "2"), values(found.get(0)));
        table.execute(TableOperation.delete(entityIn(key, key)));
        assertEquals(Map.of(), contents(table));
    }

    @ParameterizedTest
    @MethodSource("keys")
    void aKey(String key) throws Exception {
        check(key, false);
    }

    @ParameterizedTest
    @MethodSource("keys")
    void aKeyInABatch(String key) throws Exception {
        check(key, true);
    }

    @Test
    void pagesGoOnAfterKeysThatNeedEscaping() throws Exception {
        CloudTable table = newTable();
        for (String key : keys()) {
            table.execute(TableOperation.insert(entityIn(key, key)));
        }
        TreeSet<String> found = new TreeSet<>();
        ResultContinuation token = null;
        TableQuery<DynamicTableEntity> one = TableQuery.from(DynamicTableEntity.class).take(1);
        do {
            ResultSegment<DynamicTableEntity> page = table.executeSegmented(one, token);
            page.getResults().forEach(entity -> found.add(entity.getRowKey()));
            token = page.getContinuationToken();
        } while (token != null);
        assertEquals(new TreeSet<>(keys()), found);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u007fb", "a\u0085b"})
    void aForbiddenCharacterIsRefused(String key) throws Exception {
        CloudTable table = newTable();
        assertRefused(400, "OutOfRangeInput", () -> table.execute(TableOperation.insert(entityIn("p", key))));
        assertRefused(400, "OutOfRangeInput", () -> table.execute(TableOperation.insert(entityIn(key, "r"))));
    }
}
