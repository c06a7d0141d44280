// Shared access signatures for blobs from the SDK's own generators: what each field allows and refuses.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.BlobSupport.BLOBS;
import static sdk.BlobSupport.ENDPOINT;
import static sdk.BlobSupport.blobs;
import static sdk.BlobSupport.blockId;
import static sdk.BlobSupport.newContainer;
import static sdk.BlobSupport.put;
import static sdk.BlobSupport.refused;
import static sdk.BlobSupport.stream;
import static sdk.BlobSupport.text;

import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.models.BlobAccessPolicy;
import com.azure.storage.blob.models.BlobSignedIdentifier;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.blob.sas.BlobContainerSasPermission;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import com.azure.storage.common.sas.SasProtocol;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class BlobSasTest {
    private static final Set<String> REFUSALS = Set.of("AuthorizationPermissionMismatch", "UnauthorizedBlobOverwrite");

    private static OffsetDateTime fromNow(int hours) {
        return OffsetDateTime.now().plusHours(hours);
    }

    private static BlobContainerClient holder(BlobContainerClient container, String token) {
        BlobServiceClient service = blobs().endpoint(ENDPOINT).sasToken(token).buildClient();
        return service.getBlobContainerClient(container.getBlobContainerName());
    }

    private static BlobContainerClient signed(BlobContainerClient container, String letters) {
        BlobServiceSasSignatureValues values =
            new BlobServiceSasSignatureValues(fromNow(1), BlobContainerSasPermission.parse(letters));
        return holder(container, container.generateSas(values));
    }

    private static BlobContainerClient filled() {
        BlobContainerClient container = newContainer();
        put(container, "old", "content").setTags(Map.of("t", "1"));
        container.getBlobClient("log").getAppendBlobClient().create();
        return container;
    }

    /** Each operation with the letters of which any one allows it. */
    private static final Map<String, Map.Entry<String, Consumer<BlobContainerClient>>> VERBS = new TreeMap<>(Map.of(
        "read", Map.entry("r", box -> assertEquals("content", text(box.getBlobClient("old")))),
        "create", Map.entry("cw", box -> box.getBlobClient("new").getBlockBlobClient().upload(stream("x"), 1)),
        "overwrite", Map.entry("w", box -> box.getBlobClient("old").getBlockBlobClient().upload(stream("x"), 1, true)),
        "append", Map.entry("aw", box -> box.getBlobClient("log").getAppendBlobClient().appendBlock(stream("x"), 1)),
        "metadata", Map.entry("w", box -> box.getBlobClient("old").setMetadata(Map.of("a", "b"))),
        "snapshot", Map.entry("cw", box -> box.getBlobClient("old").createSnapshot()),
        "tags", Map.entry("t", box -> assertEquals(Map.of("t", "1"), box.getBlobClient("old").getTags())),
        "delete", Map.entry("d", box -> box.getBlobClient("old").delete()),
        "list", Map.entry("l", box -> assertEquals(2, box.listBlobs().stream().count())),
        "find", Map.entry("f", box -> assertEquals(1, box.findBlobsByTags("t = '1'").stream().count()))));

    static Stream<Arguments> verbsAndLetters() {
        return VERBS.keySet().stream().flatMap(verb ->
            Stream.of("r", "a", "c", "w", "d", "l", "t", "f").map(letter -> Arguments.of(verb, letter)));
    }

    @ParameterizedTest
    @MethodSource("verbsAndLetters")
    void spAllowsItsVerbsAndNoOthers(String verb, String letter) {
        BlobContainerClient box = signed(filled(), letter);
        Map.Entry<String, Consumer<BlobContainerClient>> row = VERBS.get(verb);
        if (row.getKey().contains(letter)) {
            row.getValue().accept(box);
        } else {
            BlobStorageException refusal = assertThrows(BlobStorageException.class, () -> row.getValue().accept(box));
            assertEquals(403, refusal.getStatusCode());
            assertTrue(REFUSALS.contains(refusal.getErrorCode().toString()), refusal.getMessage());
        }
    }

    @Test
    void aBlobSasIsForOneBlobAndASnapshotSasForOneSnapshot() {
        BlobContainerClient container = filled();
        var values = new BlobServiceSasSignatureValues(fromNow(1), BlobSasPermission.parse("r"));
        BlobContainerClient only = holder(container, container.getBlobClient("old").generateSas(values));
        assertEquals("content", text(only.getBlobClient("old")));
        refused(403, "AuthenticationFailed", () -> only.getBlobClient("log").getProperties());
        var snapshot = container.getBlobClient("old").createSnapshot();
        put(container, "old", "changed");
        values = new BlobServiceSasSignatureValues(fromNow(1), BlobSasPermission.parse("r"));
        BlobContainerClient past = holder(container, snapshot.generateSas(values));
        assertEquals("content", past.getBlobClient("old", snapshot.getSnapshotId()).downloadContent().toString());
        refused(403, "AuthenticationFailed", () -> past.getBlobClient("old").getProperties());
    }

    @Test
    void fields() {
        BlobContainerClient container = filled();
        Consumer<Consumer<BlobServiceSasSignatureValues>> read = change -> {
            var values = new BlobServiceSasSignatureValues(fromNow(1), BlobContainerSasPermission.parse("r"));
            change.accept(values);
            holder(container, container.generateSas(values)).getBlobClient("old").getProperties();
        };
        read.accept(values -> values.setStartTime(fromNow(-1)));
        refused(403, "AuthenticationFailed", () -> read.accept(values -> values.setStartTime(fromNow(1)).setExpiryTime(fromNow(2))));
        refused(403, "AuthenticationFailed", () -> read.accept(values -> values.setExpiryTime(fromNow(-1))));
        read.accept(values -> values.setSasIpRange(SasIpRange.parse("127.0.0.0-127.0.0.255")));
        refused(403, "AuthorizationSourceIPMismatch",
            () -> read.accept(values -> values.setSasIpRange(SasIpRange.parse("10.0.0.1"))));
        refused(403, "AuthorizationProtocolMismatch",
            () -> read.accept(values -> values.setProtocol(SasProtocol.HTTPS_ONLY)));
    }

    @Test
    void storedPolicies() {
        BlobContainerClient container = filled();
        Consumer<String> set = letters -> container.setAccessPolicy(null, List.of(new BlobSignedIdentifier().setId("p")
            .setAccessPolicy(new BlobAccessPolicy().setPermissions(letters).setExpiresOn(fromNow(1)))));
        BlobContainerClient box = holder(container, container.generateSas(new BlobServiceSasSignatureValues("p")));
        refused(403, "AuthenticationFailed", () -> box.getBlobClient("old").getProperties());
        set.accept("r");
        box.getBlobClient("old").getProperties();
        set.accept("w");
        refused(403, "AuthorizationPermissionMismatch", () -> box.getBlobClient("old").getProperties());
    }

    @Test
    void accountSas() {
        BlobContainerClient container = filled();
        java.util.function.BiFunction<String, String, BlobServiceClient> service = (letters, types) -> {
            String token = BLOBS.generateAccountSas(new AccountSasSignatureValues(fromNow(1),
                AccountSasPermission.parse(letters), new AccountSasService().setBlobAccess(true),
                AccountSasResourceType.parse(types)));
            return blobs().endpoint(ENDPOINT).sasToken(token).buildClient();
        };
        assertTrue(service.apply("l", "s").listBlobContainers().stream().findAny().isPresent());
        refused(403, "AuthorizationPermissionMismatch", () -> service.apply("r", "s").listBlobContainers().stream().count());
        refused(403, "AuthorizationResourceTypeMismatch", () -> service.apply("l", "co").listBlobContainers().stream().count());
        BlobContainerClient box = service.apply("rw", "co").getBlobContainerClient(container.getBlobContainerName());
        assertEquals("content", text(box.getBlobClient("old")));
        box.getProperties();
        box.getBlobClient("new").getBlockBlobClient().stageBlock(blockId("1"), stream("x"), 1);
        refused(403, "AuthorizationFailure", box::getAccessPolicy);
        refused(403, "AuthorizationPermissionMismatch", () -> box.getBlobClient("old").delete());
    }
}
