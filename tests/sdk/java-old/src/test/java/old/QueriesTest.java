// Queries as the older client writes them: filters for every type, select, take and resolvers.

package old;

import static old.Support.all;
import static old.Support.assertRefused;
import static old.Support.entity;
import static old.Support.missingTable;
import static old.Support.newTable;
import static old.Support.values;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableQuery;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class QueriesTest {
    private static CloudTable table;

    private static Date time(int n) {
        return new Date(1577840523004L + n * 86_400_000L);
    }

    private static UUID guid(int n) {
        return UUID.fromString("c9da6455-213d-42c9-9a79-3e9149a5783" + n);
    }

    @BeforeAll
    static void fill() throws Exception {
        table = newTable();
        TableBatchOperation batch = new TableBatchOperation();
        for (int n = 0; n < 10; n++) {
            batch.insert(entity("r" + n, "n", n, "text", "it's " + n, "int64", (1L << 53) + n, "fraction", n + 0.5,
                "even", n % 2 == 0, "time", time(n), "guid", guid(n), "bytes", new byte[] {(byte) n}));
        }
        table.execute(batch);
    }

    static Stream<Arguments> filters() {
        String most = TableQuery.generateFilterCondition("n", "gt", 2);
        String odd = TableQuery.generateFilterCondition("even", "ne", true);
        return Stream.of(
            Arguments.of(TableQuery.generateFilterCondition("text", "eq", "it's 3"), List.of(3)),
            Arguments.of("RowKey ge 'r4' and RowKey lt 'r6'", List.of(4, 5)),
            Arguments.of(TableQuery.generateFilterCondition("n", "gt", 7), List.of(8, 9)),
            Arguments.of(TableQuery.generateFilterCondition("int64", "ge", (1L << 53) + 8), List.of(8, 9)),
            Arguments.of(TableQuery.generateFilterCondition("fraction", "lt", 1.6), List.of(0, 1)),
            Arguments.of(TableQuery.generateFilterCondition("even", "eq", true), List.of(0, 2, 4, 6, 8)),
            Arguments.of(TableQuery.generateFilterCondition("time", "eq", time(4)), List.of(4)),
            Arguments.of(TableQuery.generateFilterCondition("guid", "eq", guid(7)), List.of(7)),
            Arguments.of(TableQuery.generateFilterCondition("bytes", "eq", new byte[] {5}), List.of(5)),
            Arguments.of(TableQuery.combineFilters(most, "and", odd), List.of(3, 5, 7, 9)),
            Arguments.of("not (n lt 8)", List.of(8, 9)),
            Arguments.of("n eq 99", List.of()));
    }

    @ParameterizedTest
    @MethodSource("filters")
    void aFilter(String filter, List<Integer> expected) {
        List<DynamicTableEntity> found = all(table, TableQuery.from(DynamicTableEntity.class).where(filter));
        List<Integer> numbers = new ArrayList<>();
        found.forEach(entity -> numbers.add(entity.getProperties().get("n").getValueAsInteger()));
        assertEquals(expected, numbers);
    }

    @Test
    void selectChoosesProperties() {
        TableQuery<DynamicTableEntity> query =
            TableQuery.from(DynamicTableEntity.class).where("n eq 3").select(new String[] {"n", "text"});
        assertEquals(Map.of("n", "3", "text", "it's 3"), values(all(table, query).get(0)));
    }

    @Test
    void aResolverMakesOtherObjects() {
        List<String> found = new ArrayList<>();
        TableQuery<DynamicTableEntity> query = TableQuery.from(DynamicTableEntity.class).where("n lt 2");
        table.execute(query, (partition, row, timestamp, values, etag) ->
            partition + row + values.get("text").getValueAsString()).forEach(found::add);
        assertEquals(Arrays.asList("pr0it's 0", "pr1it's 1"), found);
    }

    @Test
    void aFilterThatIsNoneIsRefused() {
        assertRefused(400, "InvalidInput", () -> all(table, TableQuery.from(DynamicTableEntity.class).where("n eq eq 1")));
    }

    @Test
    void aQueryOfAMissingTableIsNotFound() throws Exception {
        CloudTable missing = missingTable();
        assertRefused(404, "TableNotFound", () -> all(missing));
    }
}
