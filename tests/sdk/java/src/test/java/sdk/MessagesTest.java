// Messages: send, receive, peek, update, delete, clear.

package sdk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.QueueSupport.TEXT_BYTES_MAX;
import static sdk.QueueSupport.WEEK;
import static sdk.QueueSupport.assertAround;
import static sdk.QueueSupport.count;
import static sdk.QueueSupport.newQueue;
import static sdk.QueueSupport.peek;
import static sdk.QueueSupport.peekTexts;
import static sdk.QueueSupport.queues;
import static sdk.QueueSupport.receive;
import static sdk.QueueSupport.receiveSoon;
import static sdk.QueueSupport.refused;
import static sdk.QueueSupport.send;
import static sdk.QueueSupport.texts;

import com.azure.core.util.BinaryData;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueMessageEncoding;
import com.azure.storage.queue.models.PeekedMessageItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.SendMessageResult;
import com.azure.storage.queue.models.UpdateMessageResult;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MessagesTest {
    private static final OffsetDateTime NEVER = OffsetDateTime.parse("9999-12-31T23:59:59Z");
    private static final String RANGE = "OutOfRangeQueryParameterValue";

    private final QueueClient queue = newQueue();

    private UpdateMessageResult update(String id, String receipt, String text, long seconds) {
        return queue.updateMessage(id, receipt, text, Duration.ofSeconds(seconds));
    }

    @Test
    void messagesAreDescribed() {
        SendMessageResult sent = queue.sendMessage("text");
        assertTrue(sent.getMessageId().matches("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
        assertAround(sent.getInsertionTime(), 0);
        assertEquals(sent.getInsertionTime(), sent.getTimeNextVisible());
        assertEquals(Duration.ofDays(7), Duration.between(sent.getInsertionTime(), sent.getExpirationTime()));

        PeekedMessageItem peeked = queue.peekMessage();
        assertEquals(List.of(sent.getMessageId(), "text", 0L, sent.getInsertionTime(), sent.getExpirationTime()),
            List.of(peeked.getMessageId(), peeked.getBody().toString(), peeked.getDequeueCount(),
                peeked.getInsertionTime(), peeked.getExpirationTime()));

        QueueMessageItem taken = queue.receiveMessage();
        assertEquals(List.of(sent.getMessageId(), "text", 1L, sent.getInsertionTime(), sent.getExpirationTime()),
            List.of(taken.getMessageId(), taken.getBody().toString(), taken.getDequeueCount(),
                taken.getInsertionTime(), taken.getExpirationTime()));
        assertNotEquals(sent.getPopReceipt(), taken.getPopReceipt());
        assertAround(taken.getTimeNextVisible(), 30);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "plain", "grüße 漢字 😀 \u00a0 e\u0301", "<a href=\"x\">&amp; & ]]> 'q' <![CDATA[y]]></a>",
        "  leading, trailing, \t tab and\nline  ", "   ", "{\"a\": [1, 2.5, null]}", "aGVsbG8+/w=="})
    void textComesBackAsSent(String text) {
        queue.sendMessage(text);
        assertEquals(List.of(text), peekTexts(queue));
        assertEquals(List.of(text), texts(receive(queue, 32, 30)));
    }

    @Test
    void anEmptyTextIsAMessageToo() {
        SendMessageResult sent = queue.sendMessage("");
        QueueMessageItem taken = queue.receiveMessage();
        assertEquals(sent.getMessageId(), taken.getMessageId());
        // The SDK reads an empty element as nothing.
        assertTrue(taken.getBody() == null || taken.getBody().toBytes().length == 0);
    }

    @Test
    void aTextHas64KiBAtMost() {
        for (String letter : List.of("x", "漢", "&")) {
            String most = letter.repeat(TEXT_BYTES_MAX / letter.getBytes(StandardCharsets.UTF_8).length);
            most += "x".repeat(TEXT_BYTES_MAX - most.getBytes(StandardCharsets.UTF_8).length);
            String tooMuch = most + "x";
            SendMessageResult sent = queue.sendMessage(most);
            assertEquals(List.of(most), peekTexts(queue));
            refused(413, "RequestBodyTooLarge", () -> queue.sendMessage(tooMuch));
            refused(413, "RequestBodyTooLarge", () -> update(sent.getMessageId(), sent.getPopReceipt(), tooMuch, 0));
            queue.deleteMessage(sent.getMessageId(), sent.getPopReceipt());
        }
        assertEquals(0, count(queue));
    }

    @Test
    void base64EncodingCarriesBytes() {
        QueueClient encoding = queues().connectionString(Support.CONNECTION_STRING)
            .messageEncoding(QueueMessageEncoding.BASE64).buildClient().getQueueClient(queue.getQueueName());
        byte[] bytes = {0, (byte) 255, (byte) 254};
        encoding.sendMessage(BinaryData.fromBytes(bytes));
        assertEquals(List.of("AP/+"), peekTexts(queue));
        assertArrayEquals(bytes, encoding.peekMessage().getBody().toBytes());
        QueueMessageItem taken = encoding.receiveMessage();
        assertArrayEquals(bytes, taken.getBody().toBytes());
        encoding.updateMessage(taken.getMessageId(), taken.getPopReceipt(), "grüße", Duration.ZERO);
        assertEquals(List.of("Z3LDvMOfZQ=="), peekTexts(queue));
    }

    @Test
    void timeToLive() {
        assertAround(send(queue, "text", null, Duration.ofSeconds(100)).getExpirationTime(), 100);
        assertAround(send(queue, "text", null, Duration.ofDays(70)).getExpirationTime(), 10 * WEEK);
        assertEquals(NEVER, send(queue, "text", null, Duration.ofSeconds(-1)).getExpirationTime());
        for (long seconds : new long[] {0, -2}) {
            refused(400, "InvalidQueryParameterValue", () -> send(queue, "text", null, Duration.ofSeconds(seconds)));
        }
    }

    @Test
    void aMessageIsGoneWhenItHasExpired() throws InterruptedException {
        SendMessageResult sent = send(queue, "short", null, Duration.ofSeconds(1));
        queue.sendMessage("long");
        Thread.sleep(1200);
        assertEquals(List.of("long"), peekTexts(queue));
        assertEquals(List.of("long"), texts(receive(queue, 32, 30)));
        assertEquals(1, count(queue));
        refused(404, "MessageNotFound", () -> queue.deleteMessage(sent.getMessageId(), sent.getPopReceipt()));
    }

    @Test
    void visibilityEndsBeforeTheMessageAndWithinAWeek() {
        Duration forEver = Duration.ofSeconds(-1);
        Duration ten = Duration.ofSeconds(10);
        String message = refused(400, "InvalidQueryParameterValue", () -> send(queue, "text", ten, ten)).getMessage();
        assertTrue(message.contains("messagettl must be greater than visibilitytimeout"), message);
        send(queue, "text", Duration.ofSeconds(9), ten);
        send(queue, "text", Duration.ofSeconds(WEEK), forEver);
        SendMessageResult sent = queue.sendMessage("text");
        for (long seconds : new long[] {-1, WEEK + 1}) {
            refused(400, RANGE, () -> send(queue, "text", Duration.ofSeconds(seconds), forEver));
            refused(400, RANGE, () -> update(sent.getMessageId(), sent.getPopReceipt(), "x", seconds));
            refused(400, RANGE, () -> receive(queue, 1, seconds));
        }
        refused(400, RANGE, () -> receive(queue, 1, 0));
    }

    @Test
    void aMessageSentInvisibleAppearsOnTime() throws InterruptedException {
        SendMessageResult sent = send(queue, "later", Duration.ofSeconds(1), null);
        assertNull(queue.receiveMessage());
        assertNull(queue.peekMessage());
        assertEquals(sent.getMessageId(), receiveSoon(queue).getMessageId());
    }

    @Test
    void aMessageComesBackAndIsLostToTheFirstTaker() throws InterruptedException {
        queue.sendMessage("again");
        QueueMessageItem first = receive(queue, 1, 1).get(0);
        assertNull(queue.receiveMessage());
        QueueMessageItem second = receiveSoon(queue);
        assertEquals(List.of(1L, 2L), List.of(first.getDequeueCount(), second.getDequeueCount()));
        refused(404, "MessageNotFound", () -> queue.deleteMessage(first.getMessageId(), first.getPopReceipt()));
        refused(404, "MessageNotFound", () -> update(first.getMessageId(), first.getPopReceipt(), "x", 60));
        queue.deleteMessage(second.getMessageId(), second.getPopReceipt());
    }

    @Test
    void firstInFirstOutUpTo32AtATime() {
        List<String> sent = IntStream.range(0, 40).mapToObj(String::valueOf).toList();
        sent.forEach(queue::sendMessage);
        assertEquals(sent.subList(0, 32), peekTexts(queue));
        assertEquals("0", queue.receiveMessage().getBody().toString());
        assertEquals(sent.subList(1, 33), texts(receive(queue, 32, 30)));
        assertEquals(sent.subList(33, 40), texts(receive(queue, 32, 30)));
        assertEquals(List.of(), receive(queue, 32, 30));
        for (int number : new int[] {0, 33}) {
            refused(400, RANGE, () -> receive(queue, number, 30));
            refused(400, RANGE, () -> peek(queue, number));
        }
    }

    @Test
    void anUpdateChangesTextAndVisibility() {
        queue.sendMessage("old");
        QueueMessageItem taken = queue.receiveMessage();
        UpdateMessageResult updated = update(taken.getMessageId(), taken.getPopReceipt(), "new <&>", 0);
        assertAround(updated.getTimeNextVisible(), 0);
        QueueMessageItem again = queue.receiveMessage();
        assertEquals(List.of(taken.getMessageId(), "new <&>", 2L, taken.getInsertionTime(), taken.getExpirationTime()),
            List.of(again.getMessageId(), again.getBody().toString(), again.getDequeueCount(),
                again.getInsertionTime(), again.getExpirationTime()));
    }

    @Test
    void anUpdateWithoutTextKeepsTheText() {
        SendMessageResult sent = queue.sendMessage("stays");
        update(sent.getMessageId(), sent.getPopReceipt(), null, 0);
        assertEquals(List.of("stays"), peekTexts(queue));
    }

    @Test
    void anUpdateExtendsTheTime() throws InterruptedException {
        queue.sendMessage("text");
        QueueMessageItem taken = receive(queue, 1, 1).get(0);
        UpdateMessageResult updated = update(taken.getMessageId(), taken.getPopReceipt(), null, 100);
        assertAround(updated.getTimeNextVisible(), 100);
        Thread.sleep(1200);
        assertNull(queue.receiveMessage());
        queue.deleteMessage(taken.getMessageId(), updated.getPopReceipt());
    }

    @Test
    void onlyTheNewestReceiptWorks() {
        SendMessageResult sent = queue.sendMessage("text");
        String id = sent.getMessageId();
        QueueMessageItem taken = queue.receiveMessage();
        UpdateMessageResult updated = update(id, taken.getPopReceipt(), "text", 30);
        for (String stale : List.of(sent.getPopReceipt(), taken.getPopReceipt())) {
            refused(404, "MessageNotFound", () -> queue.deleteMessage(id, stale));
            refused(404, "MessageNotFound", () -> update(id, stale, "x", 0));
        }
        queue.deleteMessage(id, updated.getPopReceipt());
        refused(404, "MessageNotFound", () -> queue.deleteMessage(id, updated.getPopReceipt()));
    }

    @Test
    void malformedReceiptsAndUnknownMessagesAreRefused() {
        SendMessageResult sent = queue.sendMessage("text");
        String message = refused(400, "InvalidQueryParameterValue",
            () -> queue.deleteMessage(sent.getMessageId(), "no receipt!")).getMessage();
        assertTrue(message.contains("Invalid pop receipt format"), message);
        for (String id : List.of("00000000-0000-0000-0000-000000000000", "no-guid")) {
            refused(404, "MessageNotFound", () -> queue.deleteMessage(id, sent.getPopReceipt()));
        }
        assertEquals(List.of("text"), peekTexts(queue));
    }

    @Test
    void clearingRemovesVisibleAndInvisibleMessages() {
        queue.sendMessage("text");
        queue.sendMessage("text");
        QueueMessageItem taken = queue.receiveMessage();
        queue.clearMessages();
        assertEquals(0, count(queue));
        refused(404, "MessageNotFound", () -> queue.deleteMessage(taken.getMessageId(), taken.getPopReceipt()));
        queue.sendMessage("new");
        assertEquals(List.of("new"), texts(receive(queue, 32, 30)));
    }
}
