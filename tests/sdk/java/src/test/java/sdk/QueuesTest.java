// Queues: create, list, delete, metadata, and the count of messages.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.QueueSupport.ENDPOINT;
import static sdk.QueueSupport.KEY;
import static sdk.QueueSupport.QUEUES;
import static sdk.QueueSupport.count;
import static sdk.QueueSupport.freshQueueName;
import static sdk.QueueSupport.newQueue;
import static sdk.QueueSupport.peekTexts;
import static sdk.QueueSupport.queues;
import static sdk.QueueSupport.refused;
import static sdk.QueueSupport.send;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.QueueItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueuesSegmentOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class QueuesTest {
    private static List<QueueItem> list(QueuesSegmentOptions options) {
        return QUEUES.listQueues(options, null, Context.NONE).stream().toList();
    }

    private static List<String> names(List<QueueItem> items) {
        return items.stream().map(QueueItem::getName).toList();
    }

    private static QueuesSegmentOptions prefix(String prefix) {
        return new QueuesSegmentOptions().setPrefix(prefix);
    }

    /** Five queues whose names begin with `prefix`; every other one has metadata. */
    private static List<String> five(String prefix) {
        List<String> names = new ArrayList<>();
        for (String letter : List.of("a", "b", "c", "d", "e")) {
            Map<String, String> metadata = names.size() % 2 == 1 ? Map.of("letter", letter) : null;
            names.add(prefix + "-" + letter);
            QUEUES.createQueueWithResponse(prefix + "-" + letter, metadata, null, Context.NONE);
        }
        return names;
    }

    @Test
    void aCreatedQueueIsListedAndADeletedOneIsNot() {
        String name = freshQueueName();
        assertEquals(List.of(), list(prefix(name)));
        assertEquals(name, QUEUES.createQueue(name).getQueueName());
        assertEquals(List.of(name), names(list(prefix(name))));
        QUEUES.deleteQueue(name);
        assertEquals(List.of(), list(prefix(name)));
    }

    @Test
    void creatingAgainWithTheSameMetadataChangesNothing() {
        QueueClient queue = QUEUES.getQueueClient(freshQueueName());
        assertEquals(201, queue.createWithResponse(Map.of("color", "red"), null, Context.NONE).getStatusCode());
        queue.sendMessage("stays");
        for (String name : List.of("color", "COLOR")) {
            assertEquals(204, queue.createWithResponse(Map.of(name, "red"), null, Context.NONE).getStatusCode());
        }
        for (Map<String, String> other : List.of(
            Map.<String, String>of(), Map.of("color", "blue"), Map.of("color", "red", "size", "big"))) {
            refused(409, "QueueAlreadyExists", () -> queue.createWithResponse(other, null, Context.NONE));
        }
        assertEquals(List.of("stays"), peekTexts(queue));
        assertEquals(Map.of("color", "red"), queue.getProperties().getMetadata());
    }

    @Test
    void createIfNotExistsAndDeleteIfExistsSayWhatTheyDid() {
        QueueClient queue = QUEUES.getQueueClient(freshQueueName());
        assertFalse(queue.deleteIfExists());
        assertEquals(201, queue.createIfNotExistsWithResponse(null, null, Context.NONE).getStatusCode());
        // The SDK takes the service's 204 for a creation.
        assertEquals(204, queue.createIfNotExistsWithResponse(null, null, Context.NONE).getStatusCode());
        assertFalse(queue.createIfNotExistsWithResponse(Map.of("other", "yes"), null, Context.NONE).getValue());
        assertTrue(queue.deleteIfExists());
        assertFalse(queue.deleteIfExists());
    }

    @Test
    void aQueueCreatedAgainIsEmpty() {
        QueueClient queue = newQueue();
        queue.sendMessage("gone");
        queue.setMetadata(Map.of("old", "yes"));
        queue.delete();
        queue.create();
        assertEquals(List.of(), peekTexts(queue));
        assertEquals(0, count(queue));
        assertEquals(Map.of(), queue.getProperties().getMetadata());
    }

    @Test
    void aMissingQueueIsNotFound() {
        QueueClient missing = QUEUES.getQueueClient(freshQueueName());
        String receipt = "AgAAAAMAAAAAAAAAHFrsOFDq2AE=";
        for (Executable call : List.<Executable>of(
            missing::delete, missing::getProperties, () -> missing.setMetadata(Map.of("a", "b")),
            () -> missing.getAccessPolicy().stream().toList(), () -> missing.setAccessPolicy(List.of()),
            () -> missing.sendMessage("text"), missing::receiveMessage, missing::peekMessage, missing::clearMessages,
            () -> missing.updateMessage("id", receipt, "text", Duration.ZERO),
            () -> missing.deleteMessage("id", receipt))) {
            refused(404, "QueueNotFound", call);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"UPPER", "under_score", "-first", "last-", "two--dashes", "dot.ted"})
    void namesWithIllegalCharactersAreRefused(String name) {
        refused(400, "InvalidResourceName", () -> QUEUES.createQueue(name));
    }

    @Test
    void namesHaveThreeTo63Characters() {
        String fresh = freshQueueName();
        for (String name : List.of("ab", "a".repeat(64))) {
            refused(400, "OutOfRangeInput", () -> QUEUES.createQueue(name));
        }
        for (String name : List.of(fresh + "x".repeat(63 - fresh.length()), fresh.substring(1, 4))) {
            QUEUES.createQueue(name).delete();
        }
    }

    @Test
    void listingByPrefixComesInOrderAndWithMetadataWhenAsked() {
        String prefix = freshQueueName();
        List<String> five = five(prefix);
        List<QueueItem> plain = list(prefix(prefix));
        assertEquals(five, names(plain));
        assertTrue(plain.stream().allMatch(item -> item.getMetadata() == null || item.getMetadata().isEmpty()));
        List<QueueItem> full = list(prefix(prefix).setIncludeMetadata(true));
        assertEquals(Arrays.asList(null, "b", null, "d", null), full.stream()
            .map(item -> item.getMetadata() == null ? null : item.getMetadata().get("letter")).toList());
        assertEquals(five.subList(3, 4), names(list(prefix(five.get(3)))));
        assertTrue(names(list(null)).containsAll(five));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5, 6})
    void listingPageByPageGivesEachOnce(int size) {
        String prefix = freshQueueName();
        List<String> five = five(prefix);
        List<List<String>> pages = new ArrayList<>();
        for (PagedResponse<QueueItem> page : QUEUES
            .listQueues(prefix(prefix).setMaxResultsPerPage(size), null, Context.NONE).iterableByPage()) {
            pages.add(names(page.getValue()));
        }
        assertEquals((5 + size - 1) / size, pages.size());
        assertEquals(five, pages.stream().flatMap(List::stream).toList());
    }

    @Test
    void listingResumesFromASavedToken() {
        String prefix = freshQueueName();
        List<String> five = five(prefix);
        QueuesSegmentOptions options = prefix(prefix).setMaxResultsPerPage(2);
        PagedResponse<QueueItem> first =
            QUEUES.listQueues(options, null, Context.NONE).iterableByPage().iterator().next();
        List<String> found = new ArrayList<>(names(first.getValue()));
        for (PagedResponse<QueueItem> page : QUEUES.listQueues(options, null, Context.NONE)
            .iterableByPage(first.getContinuationToken())) {
            found.addAll(names(page.getValue()));
        }
        assertEquals(five, found);
    }

    @Test
    void metadataIsReplacedAsAWhole() {
        QueueClient queue = newQueue();
        queue.setMetadata(Map.of("hello", "world", "number", "43"));
        assertEquals(Map.of("hello", "world", "number", "43"), queue.getProperties().getMetadata());
        queue.setMetadata(Map.of("other", "1"));
        refused(400, "InvalidMetadata", () -> queue.setMetadata(Map.of("with-dash", "1")));
        refused(400, "MetadataTooLarge", () -> queue.setMetadata(Map.of("a", "x".repeat(8192))));
        assertEquals(Map.of("other", "1"), queue.getProperties().getMetadata());
        queue.setMetadata(null);
        assertEquals(Map.of(), queue.getProperties().getMetadata());
    }

    @Test
    void theCountIsOfVisibleAndInvisibleMessages() {
        QueueClient queue = newQueue();
        assertEquals(0, count(queue));
        send(queue, "later", Duration.ofSeconds(60), null);
        queue.sendMessage("now");
        assertEquals(2, count(queue));
        QueueMessageItem taken = queue.receiveMessage();
        assertEquals(2, count(queue));
        queue.deleteMessage(taken.getMessageId(), taken.getPopReceipt());
        assertEquals(1, count(queue));
        queue.clearMessages();
        assertEquals(0, count(queue));
    }

    @Test
    void clientsFromAConnectionStringAndFromAnAddressAreTheSame() {
        QueueClient queue = newQueue();
        assertEquals(ENDPOINT + "/" + queue.getQueueName(), queue.getQueueUrl());
        queues().endpoint(ENDPOINT).credential(KEY).buildClient().getQueueClient(queue.getQueueName()).sendMessage("one");
        assertEquals(List.of("one"), peekTexts(queue));
    }
}
