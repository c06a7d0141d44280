// Entities: every verb, with and without an etag.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.Support.all;
import static sdk.Support.assertNotFound;
import static sdk.Support.assertNotSatisfied;
import static sdk.Support.assertRefused;
import static sdk.Support.entity;
import static sdk.Support.etag;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.plain;
import static sdk.Support.stored;

import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.rest.Response;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class EntitiesTest {
    private static final TableEntityUpdateMode MERGE = TableEntityUpdateMode.MERGE;
    private static final TableEntityUpdateMode REPLACE = TableEntityUpdateMode.REPLACE;

    private final TableClient table = newTable();

    private String insert(Object... namesAndValues) {
        return etag(table.createEntityWithResponse(one(namesAndValues), null, Context.NONE));
    }

    private String update(TableEntity entity, TableEntityUpdateMode mode, boolean ifUnchanged) {
        return etag(table.updateEntityWithResponse(entity, mode, ifUnchanged, null, Context.NONE));
    }

    private String upsert(TableEntity entity, TableEntityUpdateMode mode) {
        return etag(table.upsertEntityWithResponse(entity, mode, null, Context.NONE));
    }

    @Test
    void insertThenGetReturnsWhatWasSent() {
        Response<Void> answer = table.createEntityWithResponse(one("name", "Ada", "age", 36), null, Context.NONE);
        TableEntity found = table.getEntity("p", "r");
        assertEquals(Map.of("name", "Ada", "age", 36), plain(found));
        assertEquals(etag(answer), found.getETag());
        assertEquals(204, answer.getStatusCode());
        assertEquals("2020-12-06", answer.getHeaders().getValue(HttpHeaderName.fromString("x-ms-version")));
    }

    @Test
    void theEtagHasTheFormOfTheLiveService() {
        String etag = insert();
        assertTrue(etag.matches("W/\"datetime'\\d{4}-\\d\\d-\\d\\dT\\d\\d%3A\\d\\d%3A\\d\\d(\\.\\d{0,6}[1-9])?Z'\""), etag);
    }

    @Test
    void insertOfAnExistingEntityIsAConflictAndChangesNothing() {
        insert("n", 1);
        assertRefused(409, "EntityAlreadyExists", "The specified entity already exists.",
            () -> table.createEntity(one("n", 2)));
        assertEquals(Map.of("n", 1), stored(table));
    }

    @Test
    void getOfAMissingEntityIsNotFound() {
        assertNotFound(() -> table.getEntity("p", "r"));
    }

    @Test
    void keysAreCaseSensitive() {
        table.createEntity(entity("P", "R", "n", 1));
        assertNotFound(() -> table.getEntity("p", "R"));
        assertNotFound(() -> table.getEntity("P", "r"));
        insert("n", 2);
        assertEquals(Map.of("n", 1), plain(table.getEntity("P", "R")));
        assertEquals(Map.of("n", 2), stored(table));
    }

    @Test
    void updateReplaceDropsWhatItDoesNotMention() {
        insert("kept", 1, "dropped", 2);
        table.updateEntity(one("kept", 3, "added", 4), REPLACE);
        assertEquals(Map.of("kept", 3, "added", 4), stored(table));
    }

    @Test
    void updateMergeKeepsWhatItDoesNotMention() {
        insert("kept", 1, "changed", 2);
        table.updateEntity(one("changed", "now text", "added", 4), MERGE);
        assertEquals(Map.of("kept", 1, "changed", "now text", "added", 4), stored(table));
    }

    @Test
    void updateWithoutAModeMerges() {
        insert("kept", 1);
        table.updateEntity(one("added", 2));
        assertEquals(Map.of("kept", 1, "added", 2), stored(table));
    }

    @ParameterizedTest
    @EnumSource
    void updateOfAMissingEntityIsNotFound(TableEntityUpdateMode mode) {
        assertNotFound(() -> table.updateEntity(one("n", 1), mode));
        assertEquals(List.of(), all(table));
    }

    @ParameterizedTest
    @EnumSource
    void updateWithTheRightEtagSucceedsAndGivesANewOne(TableEntityUpdateMode mode) {
        String first = insert("n", 1);
        TableEntity read = table.getEntity("p", "r");
        assertEquals(first, read.getETag());
        read.addProperty("n", 2);
        String second = update(read, mode, true);
        assertNotEquals(first, second);
        TableEntity found = table.getEntity("p", "r");
        assertEquals(Map.of("n", 2), plain(found));
        assertEquals(second, found.getETag());
    }

    @ParameterizedTest
    @EnumSource
    void updateWithAnOldEtagFailsAndChangesNothing(TableEntityUpdateMode mode) {
        insert("n", 1);
        TableEntity stale = table.getEntity("p", "r");
        String current = update(one("n", 2), mode, false);
        assertNotSatisfied(() -> update(stale.addProperty("n", 3), mode, true));
        TableEntity found = table.getEntity("p", "r");
        assertEquals(Map.of("n", 2), plain(found));
        assertEquals(current, found.getETag());
    }

    @ParameterizedTest
    @EnumSource
    void updateWithAnEtagOfAMissingEntityIsNotFound(TableEntityUpdateMode mode) {
        insert("n", 1);
        TableEntity stale = table.getEntity("p", "r");
        table.deleteEntity("p", "r");
        assertNotFound(() -> update(stale, mode, true));
    }

    @ParameterizedTest
    @EnumSource
    void upsertInsertsWhatIsMissing(TableEntityUpdateMode mode) {
        String etag = upsert(one("n", 1), mode);
        TableEntity found = table.getEntity("p", "r");
        assertEquals(Map.of("n", 1), plain(found));
        assertEquals(etag, found.getETag());
    }

    @Test
    void upsertMergeKeepsAndUpsertReplaceDrops() {
        insert("a", 1, "b", 2);
        upsert(one("b", 3), MERGE);
        assertEquals(Map.of("a", 1, "b", 3), stored(table));
        upsert(one("c", 4), REPLACE);
        assertEquals(Map.of("c", 4), stored(table));
    }

    @Test
    void aNullInAMergeLeavesTheStoredValueAndInAReplaceRemovesIt() {
        insert("a", 1, "b", 2);
        table.updateEntity(one("a", null, "b", 3), MERGE);
        assertEquals(Map.of("a", 1, "b", 3), stored(table));
        table.updateEntity(one("a", null, "b", 4), REPLACE);
        assertEquals(Map.of("b", 4), stored(table));
    }

    @Test
    void deleteRemovesAndDeleteOfAMissingEntityIsQuiet() {
        insert();
        table.deleteEntity("p", "r");
        assertEquals(List.of(), all(table));
        // The SDK ignores 404 here, and nothing else.
        assertEquals(404, table.deleteEntityWithResponse(one(), false, null, Context.NONE).getStatusCode());
    }

    @Test
    void deleteMindsTheEtag() {
        insert("n", 1);
        TableEntity stale = table.getEntity("p", "r");
        table.updateEntity(one("n", 2));
        assertNotSatisfied(() -> table.deleteEntityWithResponse(stale, true, null, Context.NONE));
        assertEquals(Map.of("n", 2), stored(table));
        table.deleteEntityWithResponse(table.getEntity("p", "r"), true, null, Context.NONE);
        assertEquals(List.of(), all(table));
    }

    @Test
    void anEtagFromAListingIsTheEtag() {
        String etag = insert("n", 1);
        TableEntity listed = all(table).get(0);
        assertEquals(etag, listed.getETag());
        update(listed.addProperty("n", 2), REPLACE, true);
        assertEquals(Map.of("n", 2), stored(table));
    }

    @Test
    void anEtagOfAPreviousLifeDoesNotMatchTheNext() {
        insert("n", 1);
        TableEntity stale = table.getEntity("p", "r");
        table.deleteEntity("p", "r");
        insert("n", 2);
        assertNotSatisfied(() -> update(stale, MERGE, true));
        assertEquals(Map.of("n", 2), stored(table));
    }

    @Test
    void everyWriteGivesANewEtagAndALaterTimestamp() {
        Set<String> etags = new HashSet<>(Set.of(insert("n", 0)));
        OffsetDateTime last = table.getEntity("p", "r").getTimestamp();
        for (int n = 1; n < 20; n++) {
            etags.add(update(one("n", n), MERGE, false));
            OffsetDateTime next = table.getEntity("p", "r").getTimestamp();
            assertTrue(next.isAfter(last), next + " is not after " + last);
            last = next;
        }
        assertEquals(20, etags.size());
    }

    @Test
    void aClientTimestampIsIgnored() {
        insert("Timestamp", OffsetDateTime.parse("2001-01-01T00:00:00Z"));
        assertTrue(table.getEntity("p", "r").getTimestamp().getYear() > 2001);
    }

    @Test
    void selectReturnsExactlyWhatWasAskedForAndNullForWhatIsMissing() {
        String etag = insert("a", 1, "b", "two", "c", 3.5);
        TableEntity found =
            table.getEntityWithResponse("p", "r", List.of("a", "nothing"), null, Context.NONE).getValue();
        Map<String, Object> expected = new HashMap<>(Map.of("a", 1));
        expected.put("nothing", null);
        assertEquals(expected, plain(found));
        assertEquals(etag, found.getETag());
    }
}
