// Paging: segments of at most 1,000 entities, continuation tokens, and filters across them.

package old;

import static old.Support.all;
import static old.Support.entityIn;
import static old.Support.keys;
import static old.Support.newTable;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.microsoft.azure.storage.ResultContinuation;
import com.microsoft.azure.storage.ResultSegment;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableQuery;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class PagingTest {
    private static CloudTable table;

    @BeforeAll
    static void fill() throws Exception {
        table = newTable();
        for (String partition : new String[] {"a", "b"}) {
            for (int start = 0; start < 700; start += 100) {
                TableBatchOperation batch = new TableBatchOperation();
                for (int n = start; n < start + 100; n++) {
                    batch.insert(entityIn(partition, String.format("%04d", n), "n", n));
                }
                table.execute(batch);
            }
        }
    }

    private static TableQuery<DynamicTableEntity> everything() {
        return TableQuery.from(DynamicTableEntity.class);
    }

    private static List<Integer> sizes(TableQuery<DynamicTableEntity> query) throws Exception {
        List<Integer> sizes = new ArrayList<>();
        List<DynamicTableEntity> found = new ArrayList<>();
        ResultContinuation token = null;
        do {
            ResultSegment<DynamicTableEntity> page = table.executeSegmented(query, token);
            sizes.add(page.getLength());
            found.addAll(page.getResults());
            token = page.getContinuationToken();
        } while (token != null);
        assertEquals(keys(found).stream().sorted().distinct().toList(), keys(found));
        return sizes;
    }

    @Test
    void aSegmentHasAtMostAThousandEntities() throws Exception {
        assertEquals(List.of(1000, 400), sizes(everything()));
    }

    @Test
    void takeIsTheSizeOfEverySegment() throws Exception {
        assertEquals(List.of(500, 500, 400), sizes(everything().take(500)));
    }

    @Test
    void aListingGoesOnByItself() {
        assertEquals(1400, all(table).size());
    }

    @Test
    void aFilterHoldsOnEverySegment() {
        assertEquals(1200, all(table, everything().where("n ge 100")).size());
    }
}
