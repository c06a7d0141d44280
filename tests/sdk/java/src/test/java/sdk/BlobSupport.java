// Shared by the tests of blobs: clients for the server under test, fresh containers, and checks for refusals.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.common.StorageSharedKeyCredential;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.function.Executable;

final class BlobSupport {
    static final String ENDPOINT = Support.setting("BlobEndpoint").replaceAll("/$", "");
    static final StorageSharedKeyCredential KEY =
        new StorageSharedKeyCredential(Support.setting("AccountName"), Support.setting("AccountKey"));
    static final BlobServiceClient BLOBS = blobs().connectionString(Support.CONNECTION_STRING).buildClient();

    private BlobSupport() {}

    static BlobServiceClientBuilder blobs() {
        return new BlobServiceClientBuilder().retryOptions(Support.NO_RETRIES);
    }

    /** A container name that no other test uses. */
    static String freshContainerName() {
        return "c" + Support.freshName().substring(1);
    }

    /** A fresh, empty container. It is not deleted, because the server and its data last only as long as the suite. */
    static BlobContainerClient newContainer() {
        return BLOBS.createBlobContainer(freshContainerName());
    }

    /** Puts a block blob and returns its client. */
    static BlobClient put(BlobContainerClient container, String name, String content) {
        BlobClient blob = container.getBlobClient(name);
        blob.upload(BinaryData.fromString(content), true);
        return blob;
    }

    static String text(BlobClient blob) {
        return blob.downloadContent().toString();
    }

    /** Bytes that differ from place to place and from seed to seed. */
    static byte[] bytesOf(int size, long seed) {
        byte[] data = new byte[size];
        new Random(seed).nextBytes(data);
        return data;
    }

    static ByteArrayInputStream stream(String content) {
        return new ByteArrayInputStream(content.getBytes(StandardCharsets.UTF_8));
    }

    static String blockId(String name) {
        return Base64.getEncoder().encodeToString(name.getBytes(StandardCharsets.UTF_8));
    }

    static List<String> names(Iterable<BlobItem> items) {
        List<String> names = new java.util.ArrayList<>();
        items.forEach(item -> names.add(item.getName()));
        return names;
    }

    /** Expects the service's refusal with this status and this code. */
    static BlobStorageException refused(int status, String code, Executable call) {
        BlobStorageException refusal = assertThrows(BlobStorageException.class, call);
        assertEquals(status, refusal.getStatusCode(), refusal.getMessage());
        assertEquals(code, String.valueOf(refusal.getErrorCode()), refusal.getMessage());
        return refusal;
    }
}
