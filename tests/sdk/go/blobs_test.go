// Blobs: put, get, properties, metadata, names, ranges, conditions, leases.

package sdk

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

func TestBlobsComeBackAsTheyWerePut(t *testing.T) {
	box := newContainer(t)
	for _, size := range []int{0, 1, 8192, 8193, 300_000, 5_000_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			data := bytesOf(size, 1)
			client := putBlob(t, box, "b", string(data), nil)
			if !bytes.Equal(contentOf(t, client.BlobClient(), nil), data) {
				t.Fatal("other bytes")
			}
			found, err := client.GetProperties(ctx, nil)
			must(t, err)
			sum := md5.Sum(data)
			equal(t, *found.ContentLength, int64(size))
			equal(t, found.ContentMD5, sum[:])
			equal(t, *found.BlobType, blob.BlobTypeBlockBlob)
		})
	}
}

func TestBlobNamesOfEveryKind(t *testing.T) {
	for _, name := range []string{
		"with space", "folder/file.txt", "a//b", "trailing/", "per%cent %2F", "plus+amp&hash#question?", "日本語/😀",
		"quote'double\"", "semi;colon,comma:at@$", strings.Repeat("x", 1024),
	} {
		t.Run(name[:min(len(name), 20)], func(t *testing.T) {
			box := newContainer(t)
			client := putBlob(t, box, name, name, nil)
			equal(t, textOf(t, client.BlobClient()), name)
			equal(t, blobNames(flat(t, box, nil)), []string{name})
			_, err := client.Delete(ctx, nil)
			must(t, err)
			equal(t, blobNames(flat(t, box, nil)), []string{})
		})
	}
}

func TestBlobPropertiesAndMetadata(t *testing.T) {
	box := newContainer(t)
	client := putBlob(t, box, "b", "x", &blockblob.UploadOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: pointer("text/html"), BlobContentLanguage: pointer("de")},
		Metadata:    withMetadata("Hello", "World"),
	})
	found, err := client.GetProperties(ctx, nil)
	must(t, err)
	equal(t, *found.ContentType+*found.ContentLanguage, "text/htmlde")
	equal(t, lower(found.Metadata), map[string]string{"hello": "World"})
	options := &container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}
	equal(t, lower(flat(t, box, options)[0][0].Metadata), map[string]string{"hello": "World"})
	_, err = client.SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: pointer("image/png")}, nil)
	must(t, err)
	_, err = client.SetMetadata(ctx, withMetadata("other", "1"), nil)
	must(t, err)
	found, err = client.GetProperties(ctx, nil)
	must(t, err)
	equal(t, *found.ContentType, "image/png")
	equal(t, found.ContentLanguage == nil, true)
	equal(t, lower(found.Metadata), map[string]string{"other": "1"})
	_, err = client.SetMetadata(ctx, withMetadata("with-dash", "1"), nil)
	refused(t, err, 400, "InvalidMetadata")
}

func TestMissingBlobs(t *testing.T) {
	missing := newContainer(t).NewBlockBlobClient("nope")
	_, err := missing.DownloadStream(ctx, nil)
	refused(t, err, 404, "BlobNotFound")
	_, err = missing.GetProperties(ctx, nil)
	refused(t, err, 404, "BlobNotFound")
	_, err = missing.Delete(ctx, nil)
	refused(t, err, 404, "BlobNotFound")
	_, err = missing.GetTags(ctx, nil)
	refused(t, err, 404, "BlobNotFound")
}

func TestRangesOfBlobs(t *testing.T) {
	box := newContainer(t)
	data := bytesOf(100_000, 1)
	client := putBlob(t, box, "b", string(data), nil).BlobClient()
	for _, part := range [][2]int64{{0, 1}, {99_999, 1}, {8190, 4}, {50_000, 50_000}, {10, 200_000}, {99_990, 0}} {
		options := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: part[0], Count: part[1]}}
		end := min(part[0]+part[1], 100_000)
		if part[1] == 0 {
			end = 100_000
		}
		if !bytes.Equal(contentOf(t, client, options), data[part[0]:end]) {
			t.Fatal(part)
		}
	}
	_, err := client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 100_000, Count: 1}})
	refused(t, err, 416, "InvalidRange")
	buffer := make([]byte, 100_000)
	_, err = client.DownloadBuffer(ctx, buffer, &blob.DownloadBufferOptions{BlockSize: 7000, Concurrency: 4})
	must(t, err)
	equal(t, bytes.Equal(buffer, data), true)
	options := &blob.DownloadStreamOptions{
		Range: blob.HTTPRange{Offset: 5, Count: 10}, RangeGetContentMD5: pointer(true),
	}
	answer, err := client.DownloadStream(ctx, options)
	must(t, err)
	sum := md5.Sum(data[5:15])
	equal(t, answer.ContentMD5, sum[:])
	equal(t, *answer.ContentRange, "bytes 5-14/100000")
}

func TestTransferValidation(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("b")
	right, wrong := md5.Sum([]byte("data")), md5.Sum([]byte("other"))
	_, err := client.Upload(ctx, stream([]byte("data")), &blockblob.UploadOptions{
		TransactionalValidation: blob.TransferValidationTypeMD5(wrong[:]),
	})
	refused(t, err, 400, "Md5Mismatch")
	_, err = client.Upload(ctx, stream([]byte("data")), &blockblob.UploadOptions{
		TransactionalValidation: blob.TransferValidationTypeMD5(right[:]),
	})
	must(t, err)
	// The SDK computes the checksum itself.
	_, err = client.StageBlock(ctx, blockID("1"), stream([]byte("data")), &blockblob.StageBlockOptions{
		TransactionalValidation: blob.TransferValidationTypeComputeCRC64(),
	})
	must(t, err)
	_, err = client.StageBlock(ctx, blockID("2"), stream([]byte("data")), &blockblob.StageBlockOptions{
		TransactionalValidation: blob.TransferValidationTypeCRC64(1),
	})
	refused(t, err, 400, "Crc64Mismatch")
}

func TestConditionsOfBlobs(t *testing.T) {
	box := newContainer(t)
	client := putBlob(t, box, "b", "content", &blockblob.UploadOptions{Tags: map[string]string{"status": "done"}})
	found, err := client.GetProperties(ctx, nil)
	must(t, err)
	other := azcore.ETag("\"0x1\"")
	before, after := found.LastModified.Add(-24*time.Hour), found.LastModified.Add(24*time.Hour)
	modified := func(change func(*blob.ModifiedAccessConditions)) *blob.AccessConditions {
		conditions := &blob.ModifiedAccessConditions{}
		change(conditions)
		return &blob.AccessConditions{ModifiedAccessConditions: conditions}
	}
	met := []*blob.AccessConditions{
		modified(func(c *blob.ModifiedAccessConditions) { c.IfMatch = found.ETag }),
		modified(func(c *blob.ModifiedAccessConditions) { c.IfNoneMatch = &other }),
		modified(func(c *blob.ModifiedAccessConditions) { c.IfModifiedSince = &before }),
		modified(func(c *blob.ModifiedAccessConditions) { c.IfUnmodifiedSince = &after }),
		modified(func(c *blob.ModifiedAccessConditions) { c.IfTags = pointer("status = 'done'") }),
	}
	for _, conditions := range met {
		equal(t, string(contentOf(t, client.BlobClient(), &blob.DownloadStreamOptions{AccessConditions: conditions})),
			"content")
	}
	unmet := map[int]*blob.AccessConditions{
		1: modified(func(c *blob.ModifiedAccessConditions) { c.IfMatch = &other }),
		2: modified(func(c *blob.ModifiedAccessConditions) { c.IfUnmodifiedSince = &before }),
		3: modified(func(c *blob.ModifiedAccessConditions) { c.IfTags = pointer("status = 'open'") }),
		4: modified(func(c *blob.ModifiedAccessConditions) { c.IfNoneMatch = found.ETag }),
		5: modified(func(c *blob.ModifiedAccessConditions) { c.IfModifiedSince = found.LastModified }),
	}
	for number, conditions := range unmet {
		answer, err := client.DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: conditions})
		if number > 3 {
			// The SDK takes 304 for a success.
			must(t, err)
			equal(t, *answer.ErrorCode, "ConditionNotMet")
		} else {
			refused(t, err, 412, "ConditionNotMet")
		}
		_, err = client.Upload(ctx, stream([]byte("new")), &blockblob.UploadOptions{AccessConditions: conditions})
		refused(t, err, 412, "ConditionNotMet")
		_, err = client.Delete(ctx, &blob.DeleteOptions{AccessConditions: conditions})
		refused(t, err, 412, "ConditionNotMet")
	}
	anything := azcore.ETagAny
	missing := modified(func(c *blob.ModifiedAccessConditions) { c.IfNoneMatch = &anything })
	_, err = client.Upload(ctx, stream([]byte("new")), &blockblob.UploadOptions{AccessConditions: missing})
	refused(t, err, 409, "BlobAlreadyExists")
	equal(t, textOf(t, client.BlobClient()), "content")
}

func TestBlobLeases(t *testing.T) {
	box := newContainer(t)
	client := putBlob(t, box, "b", "content", nil)
	holder, err := lease.NewBlobClient(client, nil)
	must(t, err)
	_, err = holder.AcquireLease(ctx, 15, nil)
	must(t, err)
	stranger, err := lease.NewBlobClient(client, nil)
	must(t, err)
	_, err = stranger.AcquireLease(ctx, 15, nil)
	refused(t, err, 409, "LeaseAlreadyPresent")
	_, err = client.SetMetadata(ctx, withMetadata("a", "b"), nil)
	refused(t, err, 412, "LeaseIdMissing")
	with := func(id *string) *blob.AccessConditions {
		return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: id}}
	}
	wrong := &blob.SetMetadataOptions{AccessConditions: with(stranger.LeaseID())}
	_, err = client.SetMetadata(ctx, withMetadata("a", "b"), wrong)
	refused(t, err, 412, "LeaseIdMismatchWithBlobOperation")
	_, err = client.SetMetadata(ctx, withMetadata("a", "b"), &blob.SetMetadataOptions{AccessConditions: with(holder.LeaseID())})
	must(t, err)
	changed, err := holder.ChangeLease(ctx, "11111111-2222-3333-4444-555555555555", nil)
	must(t, err)
	equal(t, *changed.LeaseID, "11111111-2222-3333-4444-555555555555")
	_, err = holder.RenewLease(ctx, nil)
	must(t, err)
	broken, err := holder.BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: pointer(int32(0))})
	must(t, err)
	equal(t, *broken.LeaseTime, int32(0))
	_, err = holder.RenewLease(ctx, nil)
	refused(t, err, 409, "LeaseIsBrokenAndCannotBeRenewed")
	_, err = holder.ReleaseLease(ctx, nil)
	must(t, err)
	_, err = holder.AcquireLease(ctx, 14, nil)
	refused(t, err, 400, "InvalidHeaderValue")
}
