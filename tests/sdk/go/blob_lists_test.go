// Lists of blobs: prefixes, pages, hierarchies, what they include.

package sdk

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

var tree = []string{"a/1", "a/2", "a/b/3", "a/b/4", "a/c/5", "b", "b/6", "c/", "d"}

func filledTree(t *testing.T) *container.Client {
	t.Helper()
	box := newContainer(t)
	for _, name := range tree {
		putBlob(t, box, name, name, nil)
	}
	return box
}

func TestListsByPrefixAndPage(t *testing.T) {
	box := filledTree(t)
	equal(t, blobNames(flat(t, box, &container.ListBlobsFlatOptions{Prefix: pointer("a/b")})), []string{"a/b/3", "a/b/4"})
	for _, size := range []int32{1, 2, 4, 9, 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			pages := flat(t, box, &container.ListBlobsFlatOptions{MaxResults: &size})
			equal(t, blobNames(pages), tree)
			equal(t, len(pages), (len(tree)+int(size)-1)/int(size))
		})
	}
}

func TestListsResume(t *testing.T) {
	box := filledTree(t)
	first, err := box.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: pointer(int32(3))}).NextPage(ctx)
	must(t, err)
	equal(t, blobNames(flat(t, box, &container.ListBlobsFlatOptions{Marker: first.NextMarker})), tree[3:])
}

func level(t *testing.T, box *container.Client, prefix string, size int32) []string {
	t.Helper()
	found := []string{}
	options := &container.ListBlobsHierarchyOptions{Prefix: &prefix, MaxResults: &size}
	for pager := box.NewListBlobsHierarchyPager("/", options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		for _, item := range page.Segment.BlobPrefixes {
			found = append(found, *item.Name)
		}
		for _, item := range page.Segment.BlobItems {
			found = append(found, *item.Name)
		}
	}
	return found
}

func TestHierarchies(t *testing.T) {
	box := filledTree(t)
	equal(t, level(t, box, "", 1), []string{"a/", "b", "b/", "c/", "d"})
	// The SDK gives prefixes and blobs of a page apart.
	equal(t, level(t, box, "a/", 10), []string{"a/b/", "a/c/", "a/1", "a/2"})
	equal(t, level(t, box, "", 2), []string{"a/", "b", "b/", "c/", "d"})
}

func TestListsIncludeWhatIsAskedFor(t *testing.T) {
	box := newContainer(t)
	client := putBlob(t, box, "b", "one", &blockblob.UploadOptions{
		Metadata: withMetadata("Key", "value"), Tags: map[string]string{"t": "1"},
	})
	taken, err := client.CreateSnapshot(ctx, nil)
	must(t, err)
	_, err = box.NewBlockBlobClient("staged").StageBlock(ctx, blockID("1"), stream([]byte("x")), nil)
	must(t, err)
	equal(t, blobNames(flat(t, box, nil)), []string{"b"})
	items := flat(t, box, &container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{
		Snapshots: true, Metadata: true, Tags: true, UncommittedBlobs: true,
	}})[0]
	equal(t, len(items), 3)
	equal(t, *items[0].Snapshot, *taken.Snapshot)
	equal(t, lower(items[1].Metadata), map[string]string{"key": "value"})
	equal(t, *items[1].BlobTags.BlobTagSet[0].Value, "1")
	equal(t, *items[2].Name, "staged")
	equal(t, *items[1].Properties.ContentLength, int64(3))
}
