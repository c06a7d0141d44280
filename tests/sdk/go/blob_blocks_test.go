// Blocks, appended blocks, pages, copies, snapshots, tags, tiers, batches.

package sdk

import (
	"bytes"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

const pageBytes = 512

func TestBlocksAreStagedAndCommitted(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("b")
	for name, content := range map[string]string{"1": "one", "2": "two!"} {
		_, err := client.StageBlock(ctx, blockID(name), stream([]byte(content)), nil)
		must(t, err)
	}
	_, err := client.GetProperties(ctx, nil)
	refused(t, err, 404, "BlobNotFound")
	list, err := client.GetBlockList(ctx, blockblob.BlockListTypeUncommitted, nil)
	must(t, err)
	equal(t, len(list.UncommittedBlocks), 2)
	_, err = client.CommitBlockList(ctx, []string{blockID("2"), blockID("1")}, nil)
	must(t, err)
	equal(t, textOf(t, client.BlobClient()), "two!one")
	list, err = client.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	must(t, err)
	equal(t, *list.CommittedBlocks[0].Name+*list.CommittedBlocks[1].Name, blockID("2")+blockID("1"))
	equal(t, *list.CommittedBlocks[0].Size, int64(4))
	_, err = client.CommitBlockList(ctx, []string{blockID("3")}, nil)
	refused(t, err, 400, "InvalidBlockList")
}

func TestUploadsInBlocks(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("b")
	data := bytesOf(3<<20+5, 1)
	_, err := client.UploadStream(ctx, bytes.NewReader(data), &blockblob.UploadStreamOptions{
		BlockSize: 1 << 20, Concurrency: 3,
	})
	must(t, err)
	equal(t, bytes.Equal(contentOf(t, client.BlobClient(), nil), data), true)
	list, err := client.GetBlockList(ctx, blockblob.BlockListTypeCommitted, nil)
	must(t, err)
	equal(t, len(list.CommittedBlocks), 4)
	_, err = client.UploadBuffer(ctx, data[1:], &blockblob.UploadBufferOptions{BlockSize: 512 << 10, Concurrency: 3})
	must(t, err)
	equal(t, bytes.Equal(contentOf(t, client.BlobClient(), nil), data[1:]), true)
}

func TestBlocksFromURL(t *testing.T) {
	box := newContainer(t)
	source, client := putBlob(t, box, "source", "0123456789", nil), box.NewBlockBlobClient("b")
	options := &blockblob.StageBlockFromURLOptions{Range: blob.HTTPRange{Offset: 2, Count: 3}}
	_, err := client.StageBlockFromURL(ctx, blockID("1"), source.URL(), options)
	must(t, err)
	_, err = client.CommitBlockList(ctx, []string{blockID("1")}, nil)
	must(t, err)
	equal(t, textOf(t, client.BlobClient()), "234")
	_, err = client.UploadBlobFromURL(ctx, source.URL(), nil)
	must(t, err)
	equal(t, textOf(t, client.BlobClient()), "0123456789")
	_, err = client.StageBlockFromURL(ctx, blockID("1"), box.NewBlobClient("nope").URL(), nil)
	refused(t, err, 404, "CannotVerifyCopySource")
	other := azcore.ETag("\"0x1\"")
	_, err = client.UploadBlobFromURL(ctx, source.URL(), &blockblob.UploadBlobFromURLOptions{
		SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: &other},
	})
	refused(t, err, 412, "SourceConditionNotMet")
}

func TestAppendBlobs(t *testing.T) {
	box := newContainer(t)
	log := box.NewAppendBlobClient("log")
	_, err := log.Create(ctx, nil)
	must(t, err)
	first, err := log.AppendBlock(ctx, stream([]byte("one")), nil)
	must(t, err)
	second, err := log.AppendBlock(ctx, stream([]byte("two!")), &appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: pointer(int64(3))},
	})
	must(t, err)
	equal(t, *first.BlobAppendOffset+*second.BlobAppendOffset, "03")
	equal(t, *second.BlobCommittedBlockCount, int32(2))
	_, err = log.AppendBlock(ctx, stream([]byte("x")), &appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{MaxSize: pointer(int64(7))},
	})
	refused(t, err, 412, "MaxBlobSizeConditionNotMet")
	source := putBlob(t, box, "source", "0123456789", nil)
	_, err = log.AppendBlockFromURL(ctx, source.URL(), &appendblob.AppendBlockFromURLOptions{
		Range: blob.HTTPRange{Offset: 8, Count: 2},
	})
	must(t, err)
	equal(t, textOf(t, log.BlobClient()), "onetwo!89")
	_, err = log.Seal(ctx, nil)
	must(t, err)
	_, err = log.AppendBlock(ctx, stream([]byte("x")), nil)
	refused(t, err, 409, "BlobIsSealed")
	_, err = box.NewBlockBlobClient("log").Upload(ctx, stream(nil), nil)
	refused(t, err, 409, "InvalidBlobType")
}

func pageRanges(t *testing.T, disk *pageblob.Client) [][2]int64 {
	t.Helper()
	found := [][2]int64{}
	for pager := disk.NewGetPageRangesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		for _, item := range page.PageRange {
			found = append(found, [2]int64{*item.Start / pageBytes, (*item.End + 1) / pageBytes})
		}
	}
	return found
}

func TestPageBlobs(t *testing.T) {
	box := newContainer(t)
	disk := box.NewPageBlobClient("disk")
	_, err := disk.Create(ctx, 8*pageBytes, &pageblob.CreateOptions{SequenceNumber: pointer(int64(3))})
	must(t, err)
	data := bytesOf(3*pageBytes, 1)
	written, err := disk.UploadPages(ctx, stream(data), blob.HTTPRange{Offset: pageBytes, Count: 3 * pageBytes}, nil)
	must(t, err)
	equal(t, *written.BlobSequenceNumber, int64(3))
	snapshot, err := disk.CreateSnapshot(ctx, nil)
	must(t, err)
	_, err = disk.ClearPages(ctx, blob.HTTPRange{Offset: 2 * pageBytes, Count: pageBytes}, nil)
	must(t, err)
	equal(t, pageRanges(t, disk), [][2]int64{{1, 2}, {3, 4}})
	expected := make([]byte, 8*pageBytes)
	copy(expected[pageBytes:], data)
	copy(expected[2*pageBytes:3*pageBytes], make([]byte, pageBytes))
	equal(t, bytes.Equal(contentOf(t, disk.BlobClient(), nil), expected), true)
	pager := disk.NewGetPageRangesDiffPager(&pageblob.GetPageRangesDiffOptions{PrevSnapshot: snapshot.Snapshot})
	diff, err := pager.NextPage(ctx)
	must(t, err)
	equal(t, []int{len(diff.PageRange), len(diff.ClearRange)}, []int{0, 1})
	equal(t, *diff.ClearRange[0].Start, int64(2*pageBytes))
	_, err = disk.UploadPages(ctx, stream(data), blob.HTTPRange{Offset: 7 * pageBytes, Count: 3 * pageBytes}, nil)
	refused(t, err, 416, "InvalidPageRange")
	_, err = disk.Resize(ctx, 2*pageBytes, nil)
	must(t, err)
	equal(t, len(contentOf(t, disk.BlobClient(), nil)), 2*pageBytes)
	action := pageblob.SequenceNumberActionTypeIncrement
	numbered, err := disk.UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{ActionType: &action})
	must(t, err)
	equal(t, *numbered.BlobSequenceNumber, int64(4))
}

func TestCopies(t *testing.T) {
	box := newContainer(t)
	source := putBlob(t, box, "source", "content", &blockblob.UploadOptions{Metadata: withMetadata("a", "b")})
	destination := box.NewBlobClient("copy")
	started, err := destination.StartCopyFromURL(ctx, source.URL(), nil)
	must(t, err)
	equal(t, *started.CopyStatus, blob.CopyStatusTypeSuccess)
	found, err := destination.GetProperties(ctx, nil)
	must(t, err)
	equal(t, *found.CopyProgress, "7/7")
	equal(t, lower(found.Metadata), map[string]string{"a": "b"})
	_, err = destination.AbortCopyFromURL(ctx, *started.CopyID, nil)
	refused(t, err, 409, "NoPendingCopyOperation")
	_, err = box.NewBlobClient("sync").CopyFromURL(ctx, source.URL(), nil)
	must(t, err)
	equal(t, textOf(t, box.NewBlobClient("sync")), "content")
	_, err = destination.CopyFromURL(ctx, box.NewBlobClient("nope").URL(), nil)
	refused(t, err, 404, "CannotVerifyCopySource")
}

func TestSnapshotsAndSoftDelete(t *testing.T) {
	box := newContainer(t)
	client := putBlob(t, box, "b", "first", nil)
	taken, err := client.CreateSnapshot(ctx, nil)
	must(t, err)
	putBlob(t, box, "b", "second", nil)
	old, err := client.WithSnapshot(*taken.Snapshot)
	must(t, err)
	equal(t, textOf(t, old.BlobClient()), "first")
	_, err = client.Delete(ctx, nil)
	refused(t, err, 409, "SnapshotsPresent")
	include := blob.DeleteSnapshotsOptionTypeInclude
	_, err = client.Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: &include})
	must(t, err)
	_, err = old.GetProperties(ctx, nil)
	refused(t, err, 404, "BlobNotFound")

	keep := func(policy *blobs.RetentionPolicy) {
		_, err := blobService(t).SetProperties(ctx, &blobs.SetPropertiesOptions{DeleteRetentionPolicy: policy})
		must(t, err)
	}
	keep(&blobs.RetentionPolicy{Enabled: pointer(true), Days: pointer(int32(2))})
	defer keep(&blobs.RetentionPolicy{Enabled: pointer(false)})
	client = putBlob(t, box, "kept", "content", nil)
	_, err = client.Delete(ctx, nil)
	must(t, err)
	deleted := flat(t, box, &container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Deleted: true}})
	equal(t, blobNames(deleted), []string{"kept"})
	equal(t, *deleted[0][0].Deleted, true)
	_, err = client.Undelete(ctx, nil)
	must(t, err)
	equal(t, textOf(t, client.BlobClient()), "content")
}

func TestTags(t *testing.T) {
	box, name := namedContainer(t)
	client := putBlob(t, box, "a", "x", &blockblob.UploadOptions{Tags: map[string]string{"project": "x"}})
	putBlob(t, box, "b", "x", &blockblob.UploadOptions{Tags: map[string]string{"project": "y"}})
	found, err := client.GetTags(ctx, nil)
	must(t, err)
	equal(t, *found.BlobTagSet[0].Key+*found.BlobTagSet[0].Value, "projectx")
	filtered, err := blobService(t).FilterBlobs(ctx, "@container = '"+name+"' AND project = 'y'", nil)
	must(t, err)
	equal(t, *filtered.Blobs[0].Name, "b")
	inside, err := box.FilterBlobs(ctx, "project > 'x'", nil)
	must(t, err)
	equal(t, len(inside.Blobs), 1)
	_, err = client.SetTags(ctx, map[string]string{"bad!": "x"}, nil)
	refused(t, err, 400, "InvalidTags")
	_, err = client.SetTags(ctx, map[string]string{}, nil)
	must(t, err)
	found, err = client.GetTags(ctx, nil)
	must(t, err)
	equal(t, len(found.BlobTagSet), 0)
}

func TestTiers(t *testing.T) {
	client := putBlob(t, newContainer(t), "b", "x", nil)
	_, err := client.SetTier(ctx, blob.AccessTierArchive, nil)
	must(t, err)
	_, err = client.DownloadStream(ctx, nil)
	refused(t, err, 409, "BlobArchived")
	_, err = client.SetTier(ctx, blob.AccessTierHot, nil)
	must(t, err)
	found, err := client.GetProperties(ctx, nil)
	must(t, err)
	equal(t, *found.AccessTier+*found.ArchiveStatus, "Archiverehydrate-pending-to-hot")
}

func TestBatches(t *testing.T) {
	box, name := namedContainer(t)
	for _, blobName := range []string{"a", "b c/ä"} {
		putBlob(t, box, blobName, "x", nil)
	}
	service := blobService(t)
	batch, err := service.NewBatchBuilder()
	must(t, err)
	for _, blobName := range []string{"a", "nope"} {
		must(t, batch.Delete(name, blobName, nil))
	}
	answer, err := service.SubmitBatch(ctx, batch, nil)
	must(t, err)
	equal(t, len(answer.Responses), 2)
	equal(t, answer.Responses[0].Error == nil, true)
	refused(t, answer.Responses[1].Error, 404, "BlobNotFound")
	inside, err := box.NewBatchBuilder()
	must(t, err)
	must(t, inside.SetTier("b c/ä", blob.AccessTierCool, nil))
	tiers, err := box.SubmitBatch(ctx, inside, nil)
	must(t, err)
	equal(t, tiers.Responses[0].Error == nil, true)
	equal(t, blobNames(flat(t, box, nil)), []string{"b c/ä"})
}
