// Paging: pages of the requested size, and tokens that another client can use later.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.Support.CONNECTION_STRING;
import static sdk.Support.all;
import static sdk.Support.assertRefused;
import static sdk.Support.builder;
import static sdk.Support.entity;
import static sdk.Support.newTable;
import static sdk.Support.query;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PagingTest {
    private static final int PARTITIONS = 3;
    private static final int ROWS_PER_PARTITION = 850; // 2,550 rows fill three pages of a thousand
    private static final TableClient TABLE = newTable();
    private static final List<String> ALL = new ArrayList<>();

    @BeforeAll
    static void fill() {
        for (int p = 0; p < PARTITIONS; p++) {
            for (int start = 0; start < ROWS_PER_PARTITION; start += 50) {
                List<TableTransactionAction> actions = new ArrayList<>();
                for (int n = start; n < start + 50; n++) {
                    String row = String.format("%05d", n);
                    ALL.add("p" + p + "/" + row);
                    actions.add(new TableTransactionAction(
                        TableTransactionActionType.CREATE, entity("p" + p, row, "n", n)));
                }
                TABLE.submitTransaction(actions);
            }
        }
    }

    private static ListEntitiesOptions top(int size) {
        return new ListEntitiesOptions().setTop(size);
    }

    private static List<PagedResponse<TableEntity>> pages(TableClient table, ListEntitiesOptions options, String token) {
        var entities = table.listEntities(options, null, Context.NONE);
        return (token == null ? entities.streamByPage() : entities.streamByPage(token)).toList();
    }

    private static List<String> keys(List<PagedResponse<TableEntity>> pages) {
        return keys(pages.stream().flatMap(page -> page.getValue().stream()).toArray(TableEntity[]::new));
    }

    private static List<String> keys(TableEntity... entities) {
        List<String> keys = new ArrayList<>();
        for (TableEntity entity : entities) {
            keys.add(entity.getPartitionKey() + "/" + entity.getRowKey());
        }
        return keys;
    }

    @Test
    void aPlainListingFollowsContinuationsToTheEnd() {
        assertEquals(ALL, keys(all(TABLE).toArray(TableEntity[]::new)));
    }

    @Test
    void aPageWithoutASizeHasAtMost1000() {
        List<Integer> sizes = pages(TABLE, new ListEntitiesOptions(), null).stream()
            .map(page -> page.getValue().size()).toList();
        assertEquals(ALL.size(), sizes.stream().mapToInt(Integer::intValue).sum());
        assertEquals(1000, sizes.stream().mapToInt(Integer::intValue).max().orElseThrow());
    }

    @ParameterizedTest
    @ValueSource(ints = {1000, 850, 400})
    void pagesHaveTheSizeAskedFor(int size) {
        List<PagedResponse<TableEntity>> pages = pages(TABLE, top(size), null);
        assertEquals(ALL, keys(pages));
        assertEquals(size, pages.get(0).getValue().size());
        assertTrue(pages.stream().allMatch(page -> page.getValue().size() <= size));
        assertNull(pages.get(pages.size() - 1).getContinuationToken());
    }

    @Test
    void aSavedTokenResumesWhereItStoppedInAnotherClient() {
        PagedResponse<TableEntity> first = pages(TABLE, top(700), null).get(0);
        assertNotNull(first.getContinuationToken());
        TableClient other =
            builder().connectionString(CONNECTION_STRING).buildClient().getTableClient(TABLE.getTableName());
        assertEquals(ALL.subList(700, ALL.size()), keys(pages(other, top(700), first.getContinuationToken())));
    }

    @Test
    void aTokenCanBeUsedTwice() {
        String token = pages(TABLE, top(500), null).get(0).getContinuationToken();
        for (int time = 0; time < 2; time++) {
            assertEquals(ALL.subList(500, ALL.size()), keys(pages(TABLE, top(500), token)));
        }
    }

    @Test
    void aFilteredListingPagesWithinItsFilter() {
        ListEntitiesOptions options = top(25).setFilter("PartitionKey eq 'p1' and n ge 100 and n lt 160");
        List<PagedResponse<TableEntity>> pages = pages(TABLE, options, null);
        assertEquals(ALL.subList(950, 1010), keys(pages));
        assertTrue(pages.stream().allMatch(page -> page.getValue().size() <= 25));
    }

    @Test
    void moreThan1000PerPageIsRefused() {
        assertRefused(400, "InvalidInput", () -> query(TABLE, top(1001)));
    }

    @Test
    void aTokenStaysGoodWhenTheEntityItNamesIsGone() {
        TableClient table = newTable();
        for (int row = 0; row < 6; row++) {
            table.createEntity(entity("p", String.valueOf(row)));
        }
        String token = pages(table, top(2), null).get(0).getContinuationToken();
        table.deleteEntity("p", "1");
        table.deleteEntity("p", "2");
        assertEquals(List.of("p/3", "p/4", "p/5"), keys(pages(table, top(2), token)));
    }
}
