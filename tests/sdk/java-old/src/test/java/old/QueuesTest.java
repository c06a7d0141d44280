// Queues and messages with the older client, which encodes texts in Base64 unless told otherwise.

package old;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.azure.storage.RetryNoRetry;
import com.microsoft.azure.storage.StorageCredentialsSharedAccessSignature;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.queue.CloudQueue;
import com.microsoft.azure.storage.queue.CloudQueueClient;
import com.microsoft.azure.storage.queue.CloudQueueMessage;
import com.microsoft.azure.storage.queue.MessageUpdateFields;
import com.microsoft.azure.storage.queue.QueuePermissions;
import com.microsoft.azure.storage.queue.SharedAccessQueuePermissions;
import com.microsoft.azure.storage.queue.SharedAccessQueuePolicy;
import java.util.ArrayList;
import java.util.Date;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class QueuesTest {
    private static final CloudQueueClient QUEUES = withoutRetries(Support.ACCOUNT.createCloudQueueClient());

    private CloudQueue queue;

    private static CloudQueueClient withoutRetries(CloudQueueClient client) {
        client.getDefaultRequestOptions().setRetryPolicyFactory(new RetryNoRetry());
        return client;
    }

    private static String freshQueueName() {
        return "q" + Support.freshName().substring(1);
    }

    private static void refused(int status, String code, Executable call) {
        StorageException refusal = assertThrows(StorageException.class, call);
        assertEquals(status, refusal.getHttpStatusCode(), refusal.getMessage());
        assertEquals(code, refusal.getErrorCode(), refusal.getMessage());
    }

    private static Date hours(int hours) {
        return new Date(System.currentTimeMillis() + hours * 3_600_000L);
    }

    @BeforeEach
    void newQueue() throws Exception {
        queue = QUEUES.getQueueReference(freshQueueName());
        queue.create();
        queue.setShouldEncodeMessage(false);
    }

    private List<String> peekTexts() throws Exception {
        List<String> texts = new ArrayList<>();
        for (CloudQueueMessage message : queue.peekMessages(32)) {
            texts.add(message.getMessageContentAsString());
        }
        return texts;
    }

    @Test
    void createExistListAndDelete() throws Exception {
        assertTrue(queue.exists());
        assertFalse(queue.createIfNotExists());
        List<String> names = new ArrayList<>();
        QUEUES.listQueues(queue.getName()).forEach(found -> names.add(found.getName()));
        assertEquals(List.of(queue.getName()), names);
        assertTrue(queue.deleteIfExists());
        assertFalse(queue.deleteIfExists());
        assertFalse(queue.exists());
        refused(404, "QueueNotFound", queue::delete);
    }

    @Test
    void metadataAndCount() throws Exception {
        queue.setMetadata(new HashMap<>(Map.of("hello", "world")));
        queue.uploadMetadata();
        queue.addMessage(new CloudQueueMessage("text"));
        CloudQueue other = QUEUES.getQueueReference(queue.getName());
        other.downloadAttributes();
        assertEquals(Map.of("hello", "world"), other.getMetadata());
        assertEquals(1, other.getApproximateMessageCount());
    }

    @Test
    void textsComeBackAsSent() throws Exception {
        List<String> sent = List.of("plain", "grüße 漢字 😀", "<a>&amp; & 'q'</a>", "  spaces  ");
        for (String text : sent) {
            queue.addMessage(new CloudQueueMessage(text));
        }
        assertEquals(sent, peekTexts());
        List<String> taken = new ArrayList<>();
        for (CloudQueueMessage message : queue.retrieveMessages(32)) {
            taken.add(message.getMessageContentAsString());
        }
        assertEquals(sent, taken);
    }

    @Test
    void itsOwnEncodingIsBase64() throws Exception {
        CloudQueue encoding = QUEUES.getQueueReference(queue.getName());
        encoding.addMessage(new CloudQueueMessage("grüße"));
        assertEquals(List.of("Z3LDvMOfZQ=="), peekTexts());
        assertEquals("grüße", encoding.retrieveMessage().getMessageContentAsString());
    }

    @Test
    void takeUpdateDeleteAndClear() throws Exception {
        queue.addMessage(new CloudQueueMessage("old"), 100, 0, null, null);
        CloudQueueMessage taken = queue.retrieveMessage(60, null, null);
        assertEquals(1, taken.getDequeueCount());
        assertNull(queue.retrieveMessage());
        taken.setMessageContent("new");
        queue.updateMessage(taken, 0, EnumSet.of(MessageUpdateFields.CONTENT, MessageUpdateFields.VISIBILITY), null, null);
        assertEquals(List.of("new"), peekTexts());
        CloudQueueMessage again = queue.retrieveMessage();
        // The first object has the receipt of the update, which is no longer the newest.
        refused(404, "MessageNotFound", () -> queue.deleteMessage(taken));
        queue.deleteMessage(again);
        queue.addMessage(new CloudQueueMessage("more"));
        queue.clear();
        assertEquals(List.of(), peekTexts());
    }

    @Test
    void refusals() {
        refused(404, "QueueNotFound", () -> QUEUES.getQueueReference(freshQueueName()).addMessage(new CloudQueueMessage("x")));
        refused(400, "InvalidResourceName", () -> QUEUES.getQueueReference("two--dashes").create());
    }

    @Test
    void policiesAndSignatures() throws Exception {
        SharedAccessQueuePolicy policy = new SharedAccessQueuePolicy();
        policy.setPermissions(EnumSet.of(SharedAccessQueuePermissions.ADD, SharedAccessQueuePermissions.PROCESSMESSAGES));
        policy.setSharedAccessExpiryTime(hours(1));
        QueuePermissions permissions = new QueuePermissions();
        permissions.getSharedAccessPolicies().put("worker", policy);
        queue.uploadPermissions(permissions);
        assertNotNull(queue.downloadPermissions().getSharedAccessPolicies().get("worker"));

        CloudQueue stored = holder(queue.generateSharedAccessSignature(null, "worker"));
        stored.addMessage(new CloudQueueMessage("text"));
        refused(403, "AuthorizationPermissionMismatch", stored::peekMessage);
        queue.uploadPermissions(new QueuePermissions());
        refused(403, "AuthenticationFailed", () -> stored.addMessage(new CloudQueueMessage("text")));

        policy.setPermissions(EnumSet.of(SharedAccessQueuePermissions.READ));
        assertNotNull(holder(queue.generateSharedAccessSignature(policy, null)).peekMessage());
        policy.setSharedAccessExpiryTime(hours(-1));
        refused(403, "AuthenticationFailed", holder(queue.generateSharedAccessSignature(policy, null))::peekMessage);
    }

    private CloudQueue holder(String token) throws Exception {
        CloudQueueClient client = withoutRetries(new CloudQueueClient(
            Support.ACCOUNT.getQueueEndpoint(), new StorageCredentialsSharedAccessSignature(token)));
        return client.getQueueReference(queue.getName());
    }
}
