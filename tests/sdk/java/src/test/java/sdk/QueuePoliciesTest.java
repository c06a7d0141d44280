// Access policies of queues: stored with the queue, returned as set, at most five.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static sdk.QueueSupport.newQueue;
import static sdk.QueueSupport.refused;

import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.QueueAccessPolicy;
import com.azure.storage.queue.models.QueueSignedIdentifier;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class QueuePoliciesTest {
    private static final OffsetDateTime START = OffsetDateTime.parse("2021-06-08T02:05:09Z");
    private static final OffsetDateTime EXPIRY = OffsetDateTime.parse("2021-06-08T03:10:09Z");
    private static final String INVALID = "InvalidXmlDocument";

    private final QueueClient queue = newQueue();

    private static QueueSignedIdentifier identifier(
        String id, OffsetDateTime start, OffsetDateTime expiry, String permissions) {
        return new QueueSignedIdentifier().setId(id).setAccessPolicy(
            new QueueAccessPolicy().setStartsOn(start).setExpiresOn(expiry).setPermissions(permissions));
    }

    private static List<QueueSignedIdentifier> readers(String... ids) {
        return Stream.of(ids).map(id -> identifier(id, START, EXPIRY, "r")).toList();
    }

    private List<String> ids() {
        return queue.getAccessPolicy().stream().map(QueueSignedIdentifier::getId).toList();
    }

    @Test
    void aNewQueueHasNone() {
        assertEquals(List.of(), ids());
    }

    @Test
    void theyComeBackAsTheyWereSetInOrderAndEachFieldIsOptional() {
        queue.setAccessPolicy(List.of(
            identifier("full", START, EXPIRY, "raup"), identifier("start", START, null, null),
            identifier("expiry", null, EXPIRY, null), identifier("permission", null, null, "up")));
        List<List<Object>> found = queue.getAccessPolicy().stream().map(one -> Arrays.<Object>asList(one.getId(),
            one.getAccessPolicy().getStartsOn(), one.getAccessPolicy().getExpiresOn(),
            one.getAccessPolicy().getPermissions())).toList();
        assertEquals(List.of(
            List.of("full", START, EXPIRY, "raup"), Arrays.<Object>asList("start", START, null, null),
            Arrays.<Object>asList("expiry", null, EXPIRY, null), Arrays.<Object>asList("permission", null, null, "up")),
            found);
    }

    @Test
    void settingReplacesAllAndAnEmptyListClearsAll() {
        queue.setAccessPolicy(readers("a", "b"));
        queue.setAccessPolicy(readers("c"));
        assertEquals(List.of("c"), ids());
        queue.setAccessPolicy(List.of());
        assertEquals(List.of(), ids());
    }

    @Test
    void fiveAreAcceptedAndSixRefused() {
        queue.setAccessPolicy(readers("a", "b", "c", "d", "e"));
        refused(400, INVALID, () -> queue.setAccessPolicy(readers("a", "b", "c", "d", "e", "f")));
        assertEquals(List.of("a", "b", "c", "d", "e"), ids());
    }

    @Test
    void identifiersHave64CharactersAtMostAndPermissionsAreOfQueues() {
        String longest = "ü<&>\"' " + "x".repeat(57);
        queue.setAccessPolicy(readers(longest));
        assertEquals(List.of(longest), ids());
        refused(400, INVALID, () -> queue.setAccessPolicy(readers(longest + "x")));
        refused(400, INVALID, () -> queue.setAccessPolicy(List.of(identifier("a", START, EXPIRY, "rd"))));
        assertEquals(List.of(longest), ids());
    }

    @Test
    void theyGoWithTheirQueue() {
        queue.setAccessPolicy(readers("a"));
        queue.delete();
        queue.create();
        assertEquals(List.of(), ids());
    }
}
