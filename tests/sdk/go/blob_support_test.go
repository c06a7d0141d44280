// Shared by the tests of blobs: clients for the server under test, fresh containers, and contents as plain values.

package sdk

import (
	"bytes"
	"encoding/base64"
	"io"
	"math/rand"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// blobOptions switches retries off: they would hide exactly the answers that these tests look for.
func blobOptions() *blobs.ClientOptions {
	options := &blobs.ClientOptions{}
	options.Retry = policy.RetryOptions{MaxRetries: -1}
	return options
}

func blobEndpoint() string { return strings.TrimSuffix(setting("BlobEndpoint"), "/") }

func blobKey(t *testing.T) *blob.SharedKeyCredential {
	t.Helper()
	credential, err := blob.NewSharedKeyCredential(setting("AccountName"), setting("AccountKey"))
	must(t, err)
	return credential
}

func blobService(t *testing.T) *blobs.Client {
	t.Helper()
	client, err := blobs.NewClientFromConnectionString(connectionString, blobOptions())
	must(t, err)
	return client
}

// freshContainerName is a container name that no other test uses.
func freshContainerName() string { return "c" + freshName()[1:] }

// namedContainer is a fresh, empty container and its name. It is deleted when the test ends.
func namedContainer(t *testing.T) (*container.Client, string) {
	t.Helper()
	name := freshContainerName()
	client := blobService(t).NewContainerClient(name)
	_, err := client.Create(ctx, nil)
	must(t, err)
	t.Cleanup(func() { _, _ = client.Delete(ctx, nil) })
	return client, name
}

func newContainer(t *testing.T) *container.Client {
	t.Helper()
	client, _ := namedContainer(t)
	return client
}

func stream(data []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(data)) }

// bytesOf are bytes that differ from place to place and from seed to seed.
func bytesOf(size int, seed int64) []byte {
	data := make([]byte, size)
	_, _ = rand.New(rand.NewSource(seed)).Read(data)
	return data
}

// putBlob puts a block blob and returns its client.
func putBlob(
	t *testing.T, box *container.Client, name, content string, options *blockblob.UploadOptions,
) *blockblob.Client {
	t.Helper()
	client := box.NewBlockBlobClient(name)
	_, err := client.Upload(ctx, stream([]byte(content)), options)
	must(t, err)
	return client
}

// contentOf is what a GET of the whole blob, or of a part, brings.
func contentOf(t *testing.T, client *blob.Client, options *blob.DownloadStreamOptions) []byte {
	t.Helper()
	answer, err := client.DownloadStream(ctx, options)
	must(t, err)
	data, err := io.ReadAll(answer.Body)
	must(t, err)
	must(t, answer.Body.Close())
	return data
}

func textOf(t *testing.T, client *blob.Client) string {
	t.Helper()
	return string(contentOf(t, client, nil))
}

func blockID(name string) string { return base64.StdEncoding.EncodeToString([]byte(name)) }

// flat are the names of a flat list, page by page.
func flat(t *testing.T, box *container.Client, options *container.ListBlobsFlatOptions) [][]*container.BlobItem {
	t.Helper()
	pages := [][]*container.BlobItem{}
	for pager := box.NewListBlobsFlatPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		pages = append(pages, page.Segment.BlobItems)
	}
	return pages
}

func blobNames(pages [][]*container.BlobItem) []string {
	names := []string{}
	for _, page := range pages {
		for _, item := range page {
			names = append(names, *item.Name)
		}
	}
	return names
}

// lower drops the case of names, which Go gives to headers.
func lower(metadata map[string]*string) map[string]string {
	found := map[string]string{}
	for name, value := range metadata {
		found[strings.ToLower(name)] = *value
	}
	return found
}
