// Shared access signatures for queues from the SDK's own generators: what each field allows and refuses.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static sdk.QueueSupport.ENDPOINT;
import static sdk.QueueSupport.QUEUES;
import static sdk.QueueSupport.newQueue;
import static sdk.QueueSupport.peekTexts;
import static sdk.QueueSupport.queues;
import static sdk.QueueSupport.refused;

import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import com.azure.storage.common.sas.SasProtocol;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.models.QueueAccessPolicy;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueSignedIdentifier;
import com.azure.storage.queue.sas.QueueSasPermission;
import com.azure.storage.queue.sas.QueueServiceSasSignatureValues;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class QueueSasTest {
    private static final String PERMISSION = "AuthorizationPermissionMismatch";
    private static final String RESOURCE_TYPE = "AuthorizationResourceTypeMismatch";
    private static final String SCOPE = "AuthorizationFailure";
    private static final String SIGNATURE = "AuthenticationFailed";

    private interface Call {
        Object with(QueueServiceClient service, QueueClient queue, QueueMessageItem taken) throws Throwable;
    }

    /** The letter of a queue SAS (none if it has no letter for it), the type and the letters of an account SAS. */
    private record Verb(String letter, String type, String letters, Call call) {}

    private static final Map<String, Verb> VERBS = Map.ofEntries(
        Map.entry("list", new Verb("", "s", "l", (service, queue, taken) -> service.listQueues().stream().toList())),
        Map.entry("service", new Verb("", "s", "r", (service, queue, taken) -> service.getProperties())),
        Map.entry("properties", new Verb("r", "c", "r", (service, queue, taken) -> queue.getProperties())),
        Map.entry("metadata", new Verb("", "c", "w", (service, queue, taken) ->
            queue.setMetadataWithResponse(Map.of("a", "b"), null, Context.NONE))),
        Map.entry("create", new Verb("", "c", "cw", (service, queue, taken) ->
            queue.createWithResponse(null, null, Context.NONE))),
        Map.entry("drop", new Verb("", "c", "d", (service, queue, taken) -> queue.deleteWithResponse(null, Context.NONE))),
        Map.entry("peek", new Verb("r", "o", "r", (service, queue, taken) -> queue.peekMessage())),
        Map.entry("send", new Verb("a", "o", "a", (service, queue, taken) -> queue.sendMessage("new"))),
        Map.entry("receive", new Verb("p", "o", "p", (service, queue, taken) -> queue.receiveMessage())),
        Map.entry("update", new Verb("u", "o", "u", (service, queue, taken) ->
            queue.updateMessage(taken.getMessageId(), taken.getPopReceipt(), "x", Duration.ZERO))),
        Map.entry("delete", new Verb("p", "o", "p", (service, queue, taken) ->
            queue.deleteMessageWithResponse(taken.getMessageId(), taken.getPopReceipt(), null, Context.NONE))),
        Map.entry("clear", new Verb("", "o", "d", (service, queue, taken) ->
            queue.clearMessagesWithResponse(null, Context.NONE))));

    static Stream<String> verbs() {
        return VERBS.keySet().stream().sorted();
    }

    static Stream<String> queueVerbs() {
        return verbs().filter(verb -> !VERBS.get(verb).type.equals("s"));
    }

    private static OffsetDateTime hours(int hours) {
        // The SDK sends all nine digits of a second in a policy; the service has seven.
        return OffsetDateTime.now().plusHours(hours).truncatedTo(ChronoUnit.SECONDS);
    }

    private static QueueServiceClient holder(String token) {
        return queues().endpoint(ENDPOINT).sasToken(token).buildClient();
    }

    private static QueueClient withQueueSas(
        QueueClient queue, String letters, UnaryOperator<QueueServiceSasSignatureValues> change) {
        var values = new QueueServiceSasSignatureValues(hours(1), QueueSasPermission.parse(letters));
        return holder(queue.generateSas(change.apply(values))).getQueueClient(queue.getQueueName());
    }

    private static QueueServiceClient withAccountSas(
        String letters, String types, String services, UnaryOperator<AccountSasSignatureValues> change) {
        var values = new AccountSasSignatureValues(hours(1), AccountSasPermission.parse(letters),
            AccountSasService.parse(services), AccountSasResourceType.parse(types));
        return holder(QUEUES.generateAccountSas(change.apply(values)));
    }

    private static void check(boolean isAllowed, String code, Executable call) throws Throwable {
        if (isAllowed) {
            call.execute();
        } else {
            refused(403, code, call);
        }
    }

    /** A queue of two messages, of which the first is taken. */
    private static QueueClient filled() {
        QueueClient queue = newQueue();
        queue.sendMessage("taken");
        queue.sendMessage("one");
        return queue;
    }

    @ParameterizedTest
    @MethodSource("queueVerbs")
    void aQueueSasAllowsItsVerbsAndNoOthers(String name) throws Throwable {
        Verb verb = VERBS.get(name);
        for (String granted : List.of("r", "a", "u", "p", "raup")) {
            QueueClient queue = filled();
            QueueMessageItem taken = queue.receiveMessage();
            QueueClient client = withQueueSas(queue, granted, values -> values);
            String code = verb.letter.isEmpty() ? SCOPE : PERMISSION;
            check(!verb.letter.isEmpty() && granted.contains(verb.letter), code, () -> verb.call.with(null, client, taken));
        }
    }

    @ParameterizedTest
    @MethodSource("verbs")
    void anAccountSasAllowsItsVerbsAndNoOthers(String name) throws Throwable {
        Verb verb = VERBS.get(name);
        for (String granted : "rwdlacup".split("")) {
            QueueClient queue = filled();
            QueueMessageItem taken = queue.receiveMessage();
            QueueServiceClient service = withAccountSas(granted, "sco", "q", values -> values);
            QueueClient client = service.getQueueClient(queue.getQueueName());
            check(verb.letters.contains(granted), PERMISSION, () -> verb.call.with(service, client, taken));
        }
        for (String type : List.of("s", "c", "o")) {
            QueueClient queue = filled();
            QueueMessageItem taken = queue.receiveMessage();
            QueueServiceClient service = withAccountSas("rwdlacup", type, "q", values -> values);
            QueueClient client = service.getQueueClient(queue.getQueueName());
            check(verb.type.equals(type), RESOURCE_TYPE, () -> verb.call.with(service, client, taken));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"q", "bqtf", "b", "tf"})
    void anAccountSasMustNameQueues(String services) throws Throwable {
        QueueClient queue = newQueue();
        QueueClient client = withAccountSas("r", "o", services, values -> values).getQueueClient(queue.getQueueName());
        check(services.contains("q"), "AuthorizationServiceMismatch", client::peekMessage);
    }

    @Test
    void policiesNeedTheAccountKey() {
        QueueClient queue = newQueue();
        QueueClient byAccount = withAccountSas("rwdlacup", "sco", "q", values -> values).getQueueClient(queue.getQueueName());
        for (QueueClient client : List.of(byAccount, withQueueSas(queue, "raup", values -> values))) {
            refused(403, SCOPE, () -> client.getAccessPolicy().stream().toList());
            refused(403, SCOPE, () -> client.setAccessPolicy(List.of()));
        }
    }

    @Test
    void fieldsOfAQueueSas() {
        QueueClient queue = newQueue();
        queue.sendMessage("text");
        for (UnaryOperator<QueueServiceSasSignatureValues> change : List.<UnaryOperator<QueueServiceSasSignatureValues>>of(
            values -> values.setStartTime(hours(-1)), values -> values.setProtocol(SasProtocol.HTTPS_HTTP),
            values -> values.setSasIpRange(SasIpRange.parse("127.0.0.1")),
            values -> values.setSasIpRange(SasIpRange.parse("127.0.0.0-127.0.0.255")))) {
            assertEquals(List.of("text"), peekTexts(withQueueSas(queue, "r", change)));
        }
        Map<UnaryOperator<QueueServiceSasSignatureValues>, String> refusals = Map.of(
            values -> values.setStartTime(hours(1)).setExpiryTime(hours(2)), SIGNATURE,
            values -> values.setExpiryTime(hours(-1)), SIGNATURE,
            values -> values.setIdentifier("missing"), SIGNATURE,
            values -> values.setProtocol(SasProtocol.HTTPS_ONLY), "AuthorizationProtocolMismatch",
            values -> values.setSasIpRange(SasIpRange.parse("10.0.0.1")), "AuthorizationSourceIPMismatch");
        refusals.forEach((change, code) -> refused(403, code, withQueueSas(queue, "r", change)::peekMessage));
    }

    @Test
    void aSignatureOfAnotherQueueIsRefused() {
        QueueClient queue = newQueue();
        String token = newQueue().generateSas(new QueueServiceSasSignatureValues(hours(1), QueueSasPermission.parse("r")));
        refused(403, SIGNATURE, holder(token).getQueueClient(queue.getQueueName())::peekMessage);
    }

    @Test
    void anExpiredAccountSasIsRefused() {
        QueueClient queue = newQueue();
        QueueServiceClient service = withAccountSas("r", "o", "q", values -> values.setExpiryTime(hours(-1)));
        refused(403, SIGNATURE, service.getQueueClient(queue.getQueueName())::peekMessage);
    }

    @Test
    void storedPolicies() {
        QueueClient queue = newQueue();
        String token = queue.generateSas(new QueueServiceSasSignatureValues("worker"));
        QueueClient client = holder(token).getQueueClient(queue.getQueueName());
        store(queue, hours(1), "r");
        assertEquals(List.of(), peekTexts(client));
        refused(403, PERMISSION, () -> client.sendMessage("text"));
        store(queue, hours(1), "a");
        refused(403, PERMISSION, client::peekMessage);
        client.sendMessage("text");
        store(queue, hours(-1), "a");
        refused(403, SIGNATURE, () -> client.sendMessage("text"));
        store(queue, null, "a");
        refused(403, SIGNATURE, () -> client.sendMessage("text"));
        queue.setAccessPolicy(List.of());
        refused(403, SIGNATURE, () -> client.sendMessage("text"));
    }

    private static void store(QueueClient queue, OffsetDateTime expiry, String letters) {
        queue.setAccessPolicy(List.of(new QueueSignedIdentifier().setId("worker")
            .setAccessPolicy(new QueueAccessPolicy().setExpiresOn(expiry).setPermissions(letters))));
    }

    @Test
    void aWrongKeyIsRefused() {
        QueueClient queue = newQueue();
        var wrong = new StorageSharedKeyCredential(Support.setting("AccountName"), "d3Jvbmc=");
        QueueServiceClient service = queues().endpoint(ENDPOINT).credential(wrong).buildClient();
        refused(403, SIGNATURE, service.getQueueClient(queue.getQueueName())::peekMessage);
    }
}
