// Containers: create, list, delete, metadata, leases, public access, policies.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.BlobSupport.BLOBS;
import static sdk.BlobSupport.freshContainerName;
import static sdk.BlobSupport.newContainer;
import static sdk.BlobSupport.put;
import static sdk.BlobSupport.refused;

import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobAccessPolicy;
import com.azure.storage.blob.models.BlobContainerItem;
import com.azure.storage.blob.models.BlobContainerListDetails;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlobSignedIdentifier;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.ListBlobContainersOptions;
import com.azure.storage.blob.models.PublicAccessType;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import java.net.HttpURLConnection;
import java.net.URI;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ContainersTest {
    private static List<String> listed(String prefix) {
        ListBlobContainersOptions options = new ListBlobContainersOptions().setPrefix(prefix);
        return BLOBS.listBlobContainers(options, null).stream().map(BlobContainerItem::getName).toList();
    }

    @Test
    void aCreatedContainerIsListedAndADeletedOneIsNot() {
        String name = freshContainerName();
        BlobContainerClient container = BLOBS.getBlobContainerClient(name);
        assertFalse(container.exists());
        container.create();
        assertTrue(container.exists());
        assertEquals(List.of(name), listed(name));
        refused(409, "ContainerAlreadyExists", container::create);
        assertFalse(container.createIfNotExists());
        container.delete();
        assertEquals(List.of(), listed(name));
        refused(404, "ContainerNotFound", container::delete);
        assertFalse(container.deleteIfExists());
    }

    @Test
    void listsComePageByPageWithMetadata() {
        String prefix = freshContainerName();
        for (String letter : List.of("a", "b", "c")) {
            BLOBS.createBlobContainerWithResponse(prefix + letter, Map.of("letter", letter), null, Context.NONE);
        }
        ListBlobContainersOptions options = new ListBlobContainersOptions().setPrefix(prefix).setMaxResultsPerPage(2)
            .setDetails(new BlobContainerListDetails().setRetrieveMetadata(true));
        List<String> pages = new ArrayList<>();
        BLOBS.listBlobContainers(options, null).iterableByPage().forEach(page -> pages.add(
            String.join("", page.getValue().stream().map(item -> item.getMetadata().get("letter")).toList())));
        assertEquals(List.of("ab", "c"), pages);
    }

    @ParameterizedTest
    @CsvSource({
        "UPPER, InvalidResourceName", "under_score, InvalidResourceName", "two--dashes, InvalidResourceName",
        "ab, OutOfRangeInput"
    })
    void namesThatAreRefused(String name, String code) {
        refused(400, code, () -> BLOBS.createBlobContainer(name));
    }

    @Test
    void metadataIsReplacedAsAWhole() {
        BlobContainerClient container = newContainer();
        container.setMetadata(Map.of("hello", "world", "number", "43"));
        assertEquals(Map.of("hello", "world", "number", "43"), container.getProperties().getMetadata());
        container.setMetadata(Map.of("other", "1"));
        assertEquals(Map.of("other", "1"), container.getProperties().getMetadata());
        container.setMetadata(null);
        assertTrue(container.getProperties().getMetadata().isEmpty());
    }

    @Test
    void aLeaseGuardsTheDeletion() {
        BlobContainerClient container = newContainer();
        BlobLeaseClient lease = new BlobLeaseClientBuilder().containerClient(container).buildClient();
        lease.acquireLease(15);
        assertEquals(LeaseStateType.LEASED, container.getProperties().getLeaseState());
        refused(412, "LeaseIdMissing", container::delete);
        lease.renewLease();
        String next = UUID.randomUUID().toString();
        assertEquals(next, lease.changeLease(next));
        assertEquals(15, lease.breakLease(), 1);
        assertEquals(LeaseStateType.BREAKING, container.getProperties().getLeaseState());
        BlobRequestConditions held = new BlobRequestConditions().setLeaseId(next);
        container.deleteWithResponse(held, null, Context.NONE);
        assertFalse(container.exists());
    }

    private static int status(String url) throws Exception {
        return ((HttpURLConnection) URI.create(url).toURL().openConnection()).getResponseCode();
    }

    @Test
    void whatIsPublicIsReadByEverybody() throws Exception {
        BlobContainerClient container = newContainer();
        String blob = put(container, "b", "public").getBlobUrl();
        String list = container.getBlobContainerUrl() + "?restype=container&comp=list";
        assertEquals(404, status(blob));
        container.setAccessPolicy(PublicAccessType.BLOB, null);
        assertEquals(PublicAccessType.BLOB, container.getAccessPolicy().getBlobAccessType());
        assertEquals(200, status(blob));
        assertEquals(404, status(list));
        container.setAccessPolicy(PublicAccessType.CONTAINER, null);
        assertEquals(200, status(list));
        container.setAccessPolicy(null, null);
        assertNull(container.getAccessPolicy().getBlobAccessType());
    }

    @Test
    void policiesComeBackAsSet() {
        BlobContainerClient container = newContainer();
        OffsetDateTime expiry = OffsetDateTime.parse("2099-06-08T03:10:09Z");
        List<BlobSignedIdentifier> policies = new ArrayList<>();
        for (int n = 0; n < 5; n++) {
            policies.add(new BlobSignedIdentifier().setId("id" + n)
                .setAccessPolicy(new BlobAccessPolicy().setPermissions("rl").setExpiresOn(expiry)));
        }
        container.setAccessPolicy(null, policies);
        List<BlobSignedIdentifier> found = container.getAccessPolicy().getIdentifiers();
        assertEquals(List.of("id0", "id1", "id2", "id3", "id4"), found.stream().map(BlobSignedIdentifier::getId).toList());
        assertEquals("rl", found.get(0).getAccessPolicy().getPermissions());
        assertEquals(expiry, found.get(0).getAccessPolicy().getExpiresOn());
        policies.add(new BlobSignedIdentifier().setId("six").setAccessPolicy(new BlobAccessPolicy().setPermissions("r")));
        refused(400, "InvalidXmlDocument", () -> container.setAccessPolicy(null, policies));
    }

    @Test
    void theAccountTellsItsKind() {
        assertEquals("StorageV2", BLOBS.getAccountInfo().getAccountKind().toString());
        assertEquals("Standard_LRS", BLOBS.getAccountInfo().getSkuName().toString());
    }
}
