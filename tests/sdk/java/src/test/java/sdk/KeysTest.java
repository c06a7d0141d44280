// Keys: every legal character survives URLs, bodies, transactions, filters and continuation tokens.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static sdk.Support.all;
import static sdk.Support.assertRefused;
import static sdk.Support.entity;
import static sdk.Support.newTable;
import static sdk.Support.plain;
import static sdk.Support.query;

import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeysTest {
    static final List<String> AWKWARD = List.of(
        "", " ", "a b", " leading", "trailing ", "O'Brien", "''", "'", "100%", "%", "%27", "%2F", "%252F", "a+b", "a&b=c",
        "a,b", "a;b", "\"quoted\"", "key:with:colons", "..", ".", "(a)", "[a]{b}|^`~", "<a>", "$batch", "@a*!", "ü",
        "u\u0308", "日本語", "😀", "a😀b\udbff\udfff", "\ue000\uffee", "x".repeat(512));

    // Java compares strings by UTF-16 code unit, as the service does.
    private static final List<String> IN_ORDER = AWKWARD.stream().sorted().toList();

    private final TableClient table = newTable();

    @ParameterizedTest
    @FieldSource("AWKWARD")
    void everyVerbFindsTheKey(String key) {
        table.createEntity(entity(key, key, "n", 1));
        assertEquals(Map.of("n", 1), plain(table.getEntity(key, key)));
        table.updateEntity(entity(key, key, "m", 2), TableEntityUpdateMode.MERGE);
        table.upsertEntity(entity(key, key, "n", 3));
        assertEquals(Map.of("n", 3, "m", 2), plain(table.getEntity(key, key)));
        table.updateEntity(entity(key, key, "n", 4), TableEntityUpdateMode.REPLACE);

        String quoted = "'" + key.replace("'", "''") + "'";
        List<TableEntity> found = query(table, "PartitionKey eq " + quoted + " and RowKey eq " + quoted);
        assertEquals(1, found.size());
        assertEquals(Map.of("n", 4), plain(found.get(0)));
        assertEquals(List.of(key, key), List.of(found.get(0).getPartitionKey(), found.get(0).getRowKey()));

        table.deleteEntity(key, key);
        assertEquals(List.of(), all(table));
    }

    @ParameterizedTest
    @FieldSource("AWKWARD")
    void transactionsFindTheKey(String key) {
        submit(TableTransactionActionType.CREATE, entity(key, key, "n", 1));
        assertEquals(Map.of("n", 1), plain(table.getEntity(key, key)));
        submit(TableTransactionActionType.UPDATE_REPLACE, entity(key, key, "n", 2));
        assertEquals(Map.of("n", 2), plain(table.getEntity(key, key)));
        submit(TableTransactionActionType.DELETE, entity(key, key));
        assertEquals(List.of(), all(table));
    }

    private void submit(TableTransactionActionType type, TableEntity entity) {
        table.submitTransaction(List.of(new TableTransactionAction(type, entity)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"/", "\\", "#", "?", "\t", "\n", "\u0000", "\u007f", "\u0080", "\u009f"})
    void forbiddenCharactersAreRefused(String character) {
        String text = "a" + character + "b";
        assertRefused(400, "OutOfRangeInput", "The 'PartitionKey' parameter",
            () -> table.createEntity(entity(text, "r")));
        assertRefused(400, "OutOfRangeInput", "The 'RowKey' parameter", () -> table.createEntity(entity("p", text)));
        assertEquals(List.of(), all(table));
    }

    @Test
    void awkwardKeysAreListedInUtf16Order() {
        AWKWARD.forEach(key -> table.createEntity(entity(key, key, "own", key)));
        List<TableEntity> listed = all(table);
        assertEquals(IN_ORDER, listed.stream().map(TableEntity::getRowKey).toList());
        listed.forEach(found -> assertEquals(Map.of("own", found.getRowKey()), plain(found)));
    }

    @Test
    void awkwardKeysArePagedOneByOneWithoutLoss() {
        AWKWARD.forEach(key -> table.createEntity(entity(key, key)));
        List<String> found = new ArrayList<>();
        table.listEntities(new ListEntitiesOptions().setTop(1), null, Context.NONE).iterableByPage()
            .forEach(page -> page.getValue().forEach(entity -> found.add(entity.getRowKey())));
        assertEquals(IN_ORDER, found);
    }
}
