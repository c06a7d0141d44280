// Shared by the tests of queues: clients for the server under test, fresh queues, and checks for refusals.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.QueueServiceClientBuilder;
import com.azure.storage.queue.models.PeekedMessageItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueStorageException;
import com.azure.storage.queue.models.SendMessageResult;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import org.junit.jupiter.api.function.Executable;

final class QueueSupport {
    static final int TEXT_BYTES_MAX = 65_536;
    static final long WEEK = 604_800;

    static final String ENDPOINT = Support.setting("QueueEndpoint").replaceAll("/$", "");
    static final StorageSharedKeyCredential KEY =
        new StorageSharedKeyCredential(Support.setting("AccountName"), Support.setting("AccountKey"));
    static final QueueServiceClient QUEUES = queues().connectionString(Support.CONNECTION_STRING).buildClient();
    /** The SDK does not address the secondary of a path by itself. */
    static final QueueServiceClient SECONDARY = queues().endpoint(ENDPOINT + "-secondary").credential(KEY).buildClient();

    private QueueSupport() {}

    static QueueServiceClientBuilder queues() {
        return new QueueServiceClientBuilder().retryOptions(Support.NO_RETRIES);
    }

    /** A queue name that no other test uses. */
    static String freshQueueName() {
        return "q" + Support.freshName().substring(1);
    }

    /** A fresh, empty queue. It is not deleted, because the server and its data last only as long as the suite. */
    static QueueClient newQueue() {
        return QUEUES.createQueue(freshQueueName());
    }

    static SendMessageResult send(QueueClient queue, String text, Duration visibility, Duration timeToLive) {
        return queue.sendMessageWithResponse(text, visibility, timeToLive, null, Context.NONE).getValue();
    }

    static List<QueueMessageItem> receive(QueueClient queue, int count, long visibility) {
        return queue.receiveMessages(count, Duration.ofSeconds(visibility), null, Context.NONE).stream().toList();
    }

    /** The next message. Waits for one that becomes visible soon. */
    static QueueMessageItem receiveSoon(QueueClient queue) throws InterruptedException {
        for (int tries = 0; tries < 100; tries++) {
            QueueMessageItem message = queue.receiveMessage();
            if (message != null) {
                return message;
            }
            Thread.sleep(50);
        }
        throw new AssertionError("no message became visible");
    }

    static List<PeekedMessageItem> peek(QueueClient queue, int count) {
        return queue.peekMessages(count, null, Context.NONE).stream().toList();
    }

    static List<String> peekTexts(QueueClient queue) {
        return peek(queue, 32).stream().map(message -> text(message.getBody().toString())).toList();
    }

    static List<String> texts(List<QueueMessageItem> messages) {
        return messages.stream().map(message -> text(message.getBody().toString())).toList();
    }

    private static String text(String found) {
        return found == null ? "" : found;
    }

    static long count(QueueClient queue) {
        return queue.getProperties().getApproximateMessagesCount();
    }

    /** Expects a time `seconds` from now. Times on the wire are cut to whole seconds. */
    static void assertAround(OffsetDateTime moment, long seconds) {
        long off = Math.abs(Duration.between(OffsetDateTime.now(), moment).toSeconds() - seconds);
        assertTrue(off < 5, () -> moment + " is not in " + seconds + " seconds");
    }

    /** Expects the service's refusal with this status and this code. */
    static QueueStorageException refused(int status, String code, Executable call) {
        QueueStorageException refusal = assertThrows(QueueStorageException.class, call);
        assertEquals(status, refusal.getStatusCode(), refusal.getMessage());
        assertEquals(code, String.valueOf(refusal.getErrorCode()), refusal.getMessage());
        return refusal;
    }
}
