// Blobs: put, get, properties, metadata, names, ranges, checksums, conditions, leases.

package sdk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.BlobSupport.bytesOf;
import static sdk.BlobSupport.names;
import static sdk.BlobSupport.newContainer;
import static sdk.BlobSupport.put;
import static sdk.BlobSupport.refused;
import static sdk.BlobSupport.stream;
import static sdk.BlobSupport.text;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlobType;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.options.BlockBlobSimpleUploadOptions;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import java.io.ByteArrayOutputStream;
import java.security.MessageDigest;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BlobsTest {
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 8192, 8193, 300_000, 5_000_000})
    void whatIsPutIsGot(int size) throws Exception {
        byte[] data = bytesOf(size, 1);
        BlobClient blob = newContainer().getBlobClient("b");
        blob.upload(BinaryData.fromBytes(data));
        assertArrayEquals(data, blob.downloadContent().toBytes());
        BlobProperties found = blob.getProperties();
        assertEquals(size, found.getBlobSize());
        assertEquals(BlobType.BLOCK_BLOB, found.getBlobType());
        assertArrayEquals(MessageDigest.getInstance("MD5").digest(data), found.getContentMd5());
    }

    @Test
    void overwriteMustBeAskedFor() {
        BlobClient blob = put(newContainer(), "b", "one");
        refused(409, "BlobAlreadyExists", () -> blob.upload(BinaryData.fromString("two")));
        BlobProperties before = blob.getProperties();
        blob.upload(BinaryData.fromString("two!"), true);
        assertEquals("two!", text(blob));
        assertNotEquals(before.getETag(), blob.getProperties().getETag());
        assertEquals(before.getCreationTime(), blob.getProperties().getCreationTime());
    }

    @Test
    void propertiesAndMetadataAreReplacedAsAWhole() {
        BlobContainerClient container = newContainer();
        BlobClient blob = put(container, "b", "x");
        blob.setHttpHeaders(new BlobHttpHeaders().setContentType("text/html").setContentLanguage("de"));
        blob.setMetadata(Map.of("Hello", "World"));
        BlobProperties found = blob.getProperties();
        assertEquals("text/html de", found.getContentType() + " " + found.getContentLanguage());
        ListBlobsOptions options = new ListBlobsOptions().setDetails(new BlobListDetails().setRetrieveMetadata(true));
        assertEquals(Map.of("Hello", "World"), container.listBlobs(options, null).iterator().next().getMetadata());
        blob.setHttpHeaders(new BlobHttpHeaders().setContentType("image/png"));
        assertNull(blob.getProperties().getContentLanguage());
        refused(400, "InvalidMetadata", () -> blob.setMetadata(Map.of("with-dash", "1")));
    }

    @Test
    void aMissingBlobIsNotFound() {
        BlobClient missing = newContainer().getBlobClient("nope");
        assertFalse(missing.exists());
        refused(404, "BlobNotFound", missing::downloadContent);
        refused(404, "BlobNotFound", missing::getProperties);
        refused(404, "BlobNotFound", missing::delete);
        assertFalse(missing.deleteIfExists());
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "with space", "folder/file.txt", "a//b", "trailing/", "per%cent %2F", "plus+amp&hash#question?", "日本語/😀",
        "quote'double\"", "semi;colon,comma:at@$"
    })
    void namesOfEveryKind(String name) {
        BlobContainerClient container = newContainer();
        BlobClient blob = put(container, name, name);
        assertEquals(name, text(blob));
        assertEquals(name, blob.getBlobName());
        assertEquals(List.of(name), names(container.listBlobs()));
        blob.delete();
        assertEquals(List.of(), names(container.listBlobs()));
    }

    @Test
    void rangesAreRead() throws Exception {
        byte[] data = bytesOf(100_000, 1);
        BlobClient blob = newContainer().getBlobClient("b");
        blob.upload(BinaryData.fromBytes(data));
        for (long[] part : new long[][] {{0, 1}, {99_999, 1}, {8190, 4}, {50_000, 50_000}, {10, 200_000}}) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            blob.downloadStreamWithResponse(out, new BlobRange(part[0], part[1]), null, null, false, null, Context.NONE);
            int end = (int) Math.min(part[0] + part[1], data.length);
            assertArrayEquals(Arrays.copyOfRange(data, (int) part[0], end), out.toByteArray());
        }
        refused(416, "InvalidRange", () -> blob.downloadStreamWithResponse(
            new ByteArrayOutputStream(), new BlobRange(100_000, 1L), null, null, false, null, Context.NONE));
        assertArrayEquals(data, blob.openInputStream().readAllBytes());
    }

    @Test
    void contentIsChecked() throws Exception {
        BlobClient blob = newContainer().getBlobClient("b");
        byte[] wrong = MessageDigest.getInstance("MD5").digest("other".getBytes());
        refused(400, "Md5Mismatch", () -> blob.getBlockBlobClient().uploadWithResponse(
            new BlockBlobSimpleUploadOptions(stream("data"), 4).setContentMd5(wrong), null, Context.NONE));
        assertFalse(blob.exists());
    }

    @Test
    void uploadsInParallelBlocks() {
        BlobClient blob = newContainer().getBlobClient("b");
        byte[] data = bytesOf(3_000_005, 1);
        ParallelTransferOptions parallel = new ParallelTransferOptions().setBlockSizeLong(256_000L)
            .setMaxSingleUploadSizeLong(1000L).setMaxConcurrency(3);
        blob.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromBytes(data))
            .setParallelTransferOptions(parallel).setTags(Map.of("t", "1")), null, Context.NONE);
        assertArrayEquals(data, blob.downloadContent().toBytes());
        assertEquals(12, blob.getBlockBlobClient().listBlocks(
            com.azure.storage.blob.models.BlockListType.COMMITTED).getCommittedBlocks().size());
        assertEquals(Map.of("t", "1"), blob.getTags());
    }

    @Test
    void conditions() {
        BlobClient blob = put(newContainer(), "b", "content");
        BlobProperties found = blob.getProperties();
        OffsetDateTime past = found.getLastModified().minusDays(1);
        List<BlobRequestConditions> unmet = List.of(
            new BlobRequestConditions().setIfMatch("\"0x1\""),
            new BlobRequestConditions().setIfUnmodifiedSince(past),
            new BlobRequestConditions().setIfNoneMatch(found.getETag()),
            new BlobRequestConditions().setIfModifiedSince(found.getLastModified()));
        for (BlobRequestConditions condition : unmet) {
            int status = unmet.indexOf(condition) < 2 ? 412 : 304;
            refused(status, "ConditionNotMet", () -> blob.getPropertiesWithResponse(condition, null, Context.NONE));
            refused(412, "ConditionNotMet", () -> blob.setMetadataWithResponse(Map.of("a", "b"), condition, null, Context.NONE));
            refused(412, "ConditionNotMet", () -> blob.deleteWithResponse(null, condition, null, Context.NONE));
        }
        BlobRequestConditions met = new BlobRequestConditions().setIfMatch(found.getETag()).setIfUnmodifiedSince(found.getLastModified());
        blob.setMetadataWithResponse(Map.of("a", "b"), met, null, Context.NONE);
        refused(412, "ConditionNotMet", () -> blob.setMetadataWithResponse(null, met, null, Context.NONE));
        BlobRequestConditions tags = new BlobRequestConditions().setTagsConditions("status = 'done'");
        refused(412, "ConditionNotMet", () -> blob.getPropertiesWithResponse(tags, null, Context.NONE));
        blob.setTags(Map.of("status", "done"));
        assertTrue(blob.getPropertiesWithResponse(tags, null, Context.NONE).getValue().getTagCount() == 1);
    }

    @Test
    void leases() {
        BlobClient blob = put(newContainer(), "b", "content");
        BlobLeaseClient lease = new BlobLeaseClientBuilder().blobClient(blob).buildClient();
        String id = lease.acquireLease(15);
        refused(409, "LeaseAlreadyPresent", () -> new BlobLeaseClientBuilder().blobClient(blob).buildClient().acquireLease(15));
        refused(412, "LeaseIdMissing", () -> blob.setMetadata(Map.of("a", "b")));
        BlobRequestConditions other = new BlobRequestConditions().setLeaseId(UUID.randomUUID().toString());
        refused(412, "LeaseIdMismatchWithBlobOperation",
            () -> blob.setMetadataWithResponse(null, other, null, Context.NONE));
        blob.setMetadataWithResponse(null, new BlobRequestConditions().setLeaseId(id), null, Context.NONE);
        lease.renewLease();
        assertEquals(LeaseStateType.LEASED, blob.getProperties().getLeaseState());
        lease.releaseLease();
        assertEquals(LeaseStateType.AVAILABLE, blob.getProperties().getLeaseState());
        refused(400, "InvalidHeaderValue", () -> lease.acquireLease(14));
    }
}
