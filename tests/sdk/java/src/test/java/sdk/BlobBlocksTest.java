// Blocks, appended blocks, pages, copies, snapshots, soft delete, tags, tiers.

package sdk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.BlobSupport.BLOBS;
import static sdk.BlobSupport.blockId;
import static sdk.BlobSupport.bytesOf;
import static sdk.BlobSupport.names;
import static sdk.BlobSupport.newContainer;
import static sdk.BlobSupport.put;
import static sdk.BlobSupport.refused;
import static sdk.BlobSupport.stream;
import static sdk.BlobSupport.text;

import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.AppendBlobItem;
import com.azure.storage.blob.models.AppendBlobRequestConditions;
import com.azure.storage.blob.models.ArchiveStatus;
import com.azure.storage.blob.models.BlobCopyInfo;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRetentionPolicy;
import com.azure.storage.blob.models.BlockListType;
import com.azure.storage.blob.models.CopyStatusType;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.PageRangeItem;
import com.azure.storage.blob.models.SequenceNumberActionType;
import com.azure.storage.blob.models.TaggedBlobItem;
import com.azure.storage.blob.options.FindBlobsOptions;
import com.azure.storage.blob.options.ListPageRangesDiffOptions;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlockBlobClient;
import com.azure.storage.blob.specialized.PageBlobClient;
import java.io.ByteArrayInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class BlobBlocksTest {
    private static final int PAGE = 512;

    @Test
    void blocksAreStagedAndCommitted() {
        BlockBlobClient blob = newContainer().getBlobClient("b").getBlockBlobClient();
        blob.stageBlock(blockId("1"), stream("one"), 3);
        blob.stageBlock(blockId("2"), stream("two!"), 4);
        assertFalse(blob.exists());
        assertEquals(2, blob.listBlocks(BlockListType.UNCOMMITTED).getUncommittedBlocks().size());
        blob.commitBlockList(List.of(blockId("2"), blockId("1"), blockId("2")));
        assertEquals("two!onetwo!", blob.downloadContent().toString());
        assertEquals(List.of(blockId("2"), blockId("1"), blockId("2")),
            blob.listBlocks(BlockListType.ALL).getCommittedBlocks().stream().map(block -> block.getName()).toList());
        refused(400, "InvalidBlockList", () -> blob.commitBlockList(List.of(blockId("3")), true));
        refused(400, "InvalidBlobOrBlock", () -> {
            blob.stageBlock(blockId("4"), stream("x"), 1);
            blob.stageBlock(blockId("55"), stream("x"), 1);
        });
    }

    @Test
    void blocksFromUrl() {
        BlobContainerClient container = newContainer();
        BlobClient source = put(container, "source", "0123456789");
        BlockBlobClient blob = container.getBlobClient("b").getBlockBlobClient();
        blob.stageBlockFromUrl(blockId("1"), source.getBlobUrl(), new BlobRange(2, 3L));
        blob.commitBlockList(List.of(blockId("1")));
        assertEquals("234", blob.downloadContent().toString());
        blob.uploadFromUrl(source.getBlobUrl(), true);
        assertEquals("0123456789", blob.downloadContent().toString());
        refused(404, "CannotVerifyCopySource",
            () -> blob.uploadFromUrl(container.getBlobClient("nope").getBlobUrl(), true));
    }

    @Test
    void appendBlobs() {
        AppendBlobClient log = newContainer().getBlobClient("log").getAppendBlobClient();
        log.create();
        AppendBlobItem first = log.appendBlock(stream("one"), 3);
        AppendBlobItem second = log.appendBlock(stream("two!"), 4);
        assertEquals("0 3 2", first.getBlobAppendOffset() + " " + second.getBlobAppendOffset() + " "
            + second.getBlobCommittedBlockCount());
        AppendBlobRequestConditions position = new AppendBlobRequestConditions().setAppendPosition(3L);
        refused(412, "AppendPositionConditionNotMet",
            () -> log.appendBlockWithResponse(stream("x"), 1, null, position, null, Context.NONE));
        AppendBlobRequestConditions size = new AppendBlobRequestConditions().setMaxSize(7L);
        refused(412, "MaxBlobSizeConditionNotMet",
            () -> log.appendBlockWithResponse(stream("x"), 1, null, size, null, Context.NONE));
        assertEquals("onetwo!", log.downloadContent().toString());
        log.seal();
        refused(409, "BlobIsSealed", () -> log.appendBlock(stream("x"), 1));
        assertTrue(log.getProperties().isSealed());
    }

    @Test
    void pageBlobs() {
        PageBlobClient disk = newContainer().getBlobClient("disk").getPageBlobClient();
        disk.create(8 * PAGE);
        byte[] data = bytesOf(2 * PAGE, 1);
        disk.uploadPages(new PageRange().setStart(PAGE).setEnd(3 * PAGE - 1), new ByteArrayInputStream(data));
        String snapshot = disk.createSnapshot().getSnapshotId();
        disk.clearPages(new PageRange().setStart(2 * PAGE).setEnd(3 * PAGE - 1));
        List<PageRangeItem> ranges = disk.listPageRanges(new BlobRange(0)).stream().toList();
        assertEquals(1, ranges.size());
        assertEquals(PAGE, ranges.get(0).getRange().getOffset());
        List<PageRangeItem> diff = disk.listPageRangesDiff(
            new ListPageRangesDiffOptions(new BlobRange(0), snapshot), null, Context.NONE).stream().toList();
        assertEquals(1, diff.size());
        assertTrue(diff.get(0).isClear());
        byte[] expected = new byte[8 * PAGE];
        System.arraycopy(data, 0, expected, PAGE, PAGE);
        assertArrayEquals(expected, disk.downloadContent().toBytes());
        refused(416, "InvalidPageRange", () -> disk.uploadPages(
            new PageRange().setStart(8 * PAGE).setEnd(9 * PAGE - 1), new ByteArrayInputStream(new byte[PAGE])));
        disk.resize(PAGE);
        assertEquals(PAGE, disk.getProperties().getBlobSize());
        assertEquals(1, disk.updateSequenceNumber(SequenceNumberActionType.INCREMENT, null).getBlobSequenceNumber());
    }

    @Test
    void copies() {
        BlobContainerClient container = newContainer();
        BlobClient source = put(container, "source", "content");
        source.setMetadata(Map.of("a", "b"));
        BlobClient copy = container.getBlobClient("copy");
        BlobCopyInfo done = copy.beginCopy(source.getBlobUrl(), Duration.ofMillis(10)).waitForCompletion().getValue();
        assertEquals(CopyStatusType.SUCCESS, done.getCopyStatus());
        BlobProperties found = copy.getProperties();
        assertEquals("7/7", found.getCopyProgress());
        assertEquals(Map.of("a", "b"), found.getMetadata());
        copy.copyFromUrl(source.getBlobUrl());
        assertEquals("content", text(copy));
        refused(404, "CannotVerifyCopySource", () -> copy.copyFromUrl(container.getBlobClient("nope").getBlobUrl()));
        refused(409, "NoPendingCopyOperation", () -> copy.abortCopyFromUrl(copy.getProperties().getCopyId()));
    }

    @Test
    void snapshotsAndSoftDelete() {
        BlobContainerClient container = newContainer();
        BlobClient blob = put(container, "b", "first");
        BlobClientBase old = blob.createSnapshot();
        put(container, "b", "second");
        assertEquals("first", old.downloadContent().toString());
        refused(409, "SnapshotsPresent", blob::delete);
        blob.deleteWithResponse(DeleteSnapshotsOptionType.INCLUDE, null, null, Context.NONE);
        assertFalse(old.exists());

        BLOBS.setProperties(BLOBS.getProperties().setDeleteRetentionPolicy(new BlobRetentionPolicy().setEnabled(true).setDays(2)));
        try {
            BlobClient kept = put(container, "kept", "content");
            kept.delete();
            ListBlobsOptions deleted = new ListBlobsOptions().setDetails(new BlobListDetails().setRetrieveDeletedBlobs(true));
            BlobItem item = container.listBlobs(deleted, null).iterator().next();
            assertEquals("kept true", item.getName() + " " + item.isDeleted());
            kept.undelete();
            assertEquals("content", text(kept));
        } finally {
            BLOBS.setProperties(BLOBS.getProperties().setDeleteRetentionPolicy(new BlobRetentionPolicy().setEnabled(false)));
        }
    }

    @Test
    void tagsAreSetAndFound() {
        BlobContainerClient container = newContainer();
        put(container, "a", "x").setTags(Map.of("project", "x"));
        BlobClient blob = put(container, "b", "x");
        blob.setTags(Map.of("project", "y"));
        FindBlobsOptions query = new FindBlobsOptions(
            "@container = '" + container.getBlobContainerName() + "' AND project = 'y'");
        assertEquals(List.of("b"),
            BLOBS.findBlobsByTags(query, null, Context.NONE).stream().map(TaggedBlobItem::getName).toList());
        assertEquals(1, container.findBlobsByTags("project > 'x'").stream().count());
        refused(400, "InvalidTags", () -> blob.setTags(Map.of("bad!", "x")));
        assertEquals(Map.of("project", "y"), blob.getTags());
    }

    @Test
    void tiers() {
        BlobClient blob = put(newContainer(), "b", "x");
        blob.setAccessTier(AccessTier.COOL);
        assertEquals(AccessTier.COOL, blob.getProperties().getAccessTier());
        blob.setAccessTier(AccessTier.ARCHIVE);
        refused(409, "BlobArchived", blob::downloadContent);
        blob.setAccessTier(AccessTier.HOT);
        assertEquals(ArchiveStatus.REHYDRATE_PENDING_TO_HOT, blob.getProperties().getArchiveStatus());
    }

    @Test
    void hierarchies() {
        BlobContainerClient container = newContainer();
        List<String> tree = List.of("a/1", "a/2", "a/b/3", "b", "b/6", "c");
        tree.forEach(name -> put(container, name, name));
        assertEquals(tree, names(container.listBlobs()));
        assertEquals(List.of("a/", "b", "b/", "c"), names(container.listBlobsByHierarchy("")).stream().sorted().toList());
        assertEquals(List.of("a/1", "a/2", "a/b/"), names(container.listBlobsByHierarchy("a/")).stream().sorted().toList());
        ListBlobsOptions small = new ListBlobsOptions().setMaxResultsPerPage(2);
        assertEquals(tree, names(container.listBlobs(small, null)));
    }
}
