// Tables: create, list, filter, delete.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.Support.SERVICE;
import static sdk.Support.all;
import static sdk.Support.assertRefused;
import static sdk.Support.freshName;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.stored;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableItem;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TablesTest {
    private static List<String> names() {
        return SERVICE.listTables().stream().map(TableItem::getName).toList();
    }

    private static List<String> names(ListTablesOptions options) {
        return SERVICE.listTables(options, null, Context.NONE).stream().map(TableItem::getName).toList();
    }

    private static List<String> fiveTables() {
        String prefix = freshName();
        List<String> created = "abcde".chars().mapToObj(letter -> prefix + (char) letter).toList();
        created.forEach(SERVICE::createTable);
        return created;
    }

    @Test
    void aCreatedTableIsListedAndADeletedOneIsNot() {
        String name = freshName();
        assertFalse(names().contains(name));
        assertEquals(name, SERVICE.createTable(name).getTableName());
        assertEquals(1, names().stream().filter(name::equals).count());
        SERVICE.deleteTable(name);
        assertFalse(names().contains(name));
    }

    @Test
    void aTableClientCreatesAndDeletesItsOwnTable() {
        TableClient table = SERVICE.getTableClient(freshName());
        assertEquals(table.getTableName(), table.createTable().getName());
        table.deleteTable();
        assertFalse(names().contains(table.getTableName()));
    }

    @Test
    void creatingATableTwiceIsAConflictWhateverTheCase() {
        String name = newTable().getTableName();
        assertRefused(409, "TableAlreadyExists", "The table specified already exists.", () -> SERVICE.createTable(name));
        assertRefused(409, "TableAlreadyExists", () -> SERVICE.createTable(name.toUpperCase(Locale.ROOT)));
    }

    @Test
    void createIfNotExistsCreatesOnceAndKeepsWhatIsThere() {
        String name = freshName();
        SERVICE.createTableIfNotExists(name).createEntity(one("n", 7));
        SERVICE.createTableIfNotExists(name);
        assertEquals(Map.of("n", 7), stored(SERVICE.getTableClient(name)));
        assertEquals(409, SERVICE.createTableIfNotExistsWithResponse(name, null, Context.NONE).getStatusCode());
    }

    @Test
    void deletingATableThatIsNotThereIsQuiet() {
        // The SDK ignores 404 here, and nothing else.
        assertEquals(404, SERVICE.deleteTableWithResponse(freshName(), null, Context.NONE).getStatusCode());
    }

    @Test
    void aTableIsFoundWhateverTheCaseOfItsName() {
        TableClient table = newTable();
        table.createEntity(one("n", 1));
        TableClient other = SERVICE.getTableClient(table.getTableName().toUpperCase(Locale.ROOT));
        assertEquals(Map.of("n", 1), stored(other));
    }

    @Test
    void listingKeepsTheCaseOfNames() {
        String name = "Mixed" + freshName().toUpperCase(Locale.ROOT);
        SERVICE.createTable(name);
        assertTrue(names().contains(name));
        SERVICE.deleteTable(name.toLowerCase(Locale.ROOT));
        assertFalse(names().contains(name));
    }

    @Test
    void aTableCreatedAgainIsEmpty() {
        TableClient table = newTable();
        table.createEntity(one());
        table.deleteTable();
        table.createTable();
        assertEquals(List.of(), all(table));
    }

    @Test
    void aFilterFindsByNameAndByRangeInOrder() {
        List<String> created = fiveTables();
        String byName = "TableName eq '" + created.get(2) + "'";
        assertEquals(List.of(created.get(2)), names(new ListTablesOptions().setFilter(byName)));
        String byRange = "TableName ge '" + created.get(1) + "' and TableName lt '" + created.get(4) + "'";
        assertEquals(created.subList(1, 4), names(new ListTablesOptions().setFilter(byRange)));
        String without = "TableName eq '" + freshName() + "'";
        assertEquals(List.of(), names(new ListTablesOptions().setFilter(without)));
    }

    @Test
    void pagesGiveEachTableOnceAndASavedTokenResumes() {
        List<String> created = fiveTables();
        String filter = "TableName ge '" + created.get(0) + "' and TableName lt '" + created.get(4) + "z'";
        ListTablesOptions options = new ListTablesOptions().setFilter(filter).setTop(2);
        assertEquals(created, names(options));

        PagedResponse<TableItem> first =
            SERVICE.listTables(options, null, Context.NONE).iterableByPage().iterator().next();
        assertEquals(2, first.getValue().size());
        assertNotNull(first.getContinuationToken());
        List<String> rest = new ArrayList<>();
        SERVICE.listTables(options, null, Context.NONE).iterableByPage(first.getContinuationToken())
            .forEach(page -> page.getValue().forEach(item -> rest.add(item.getName())));
        assertEquals(created.subList(2, 5), rest);
    }

    @ParameterizedTest
    @CsvSource({
        "ab, OutOfRangeInput",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, OutOfRangeInput",
        "1abc, InvalidResourceName",
        "a-b-c, InvalidResourceName",
        "with space, InvalidResourceName",
    })
    void illegalNamesAreRefused(String name, String code) {
        assertRefused(400, code, () -> SERVICE.createTable(name));
    }

    @ParameterizedTest
    @ValueSource(strings = {"create", "get", "upsert", "update", "list"})
    void entitiesOfAMissingTableAreNotFound(String verb) {
        TableClient missing = SERVICE.getTableClient(freshName());
        assertRefused(404, "TableNotFound", "The table specified does not exist.", () -> {
            switch (verb) {
                case "create" -> missing.createEntity(one());
                case "get" -> missing.getEntity("p", "r");
                case "upsert" -> missing.upsertEntity(one());
                case "update" -> missing.updateEntity(one(), TableEntityUpdateMode.REPLACE);
                default -> all(missing);
            }
        });
    }
}
