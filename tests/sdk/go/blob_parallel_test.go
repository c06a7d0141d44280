// Parallel use of blobs: one winner of each race, nothing lost.

package sdk

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

func when(condition *blob.ModifiedAccessConditions) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: condition}
}

func TestOneOfManyCreatesTheBlob(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("b")
	failures := together(20, func(number int) error {
		_, err := client.Upload(ctx, stream([]byte(strconv.Itoa(number))), &blockblob.UploadOptions{
			AccessConditions: when(&blob.ModifiedAccessConditions{IfNoneMatch: pointer(azcore.ETagAny)}),
		})
		return err
	})
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
		} else {
			refused(t, err, 409, "BlobAlreadyExists")
		}
	}
	equal(t, won, 1)
}

func TestACounterLosesNoStep(t *testing.T) {
	box := newContainer(t)
	client := putBlob(t, box, "counter", "0", nil)
	step := func(int) error {
		for {
			answer, err := client.DownloadStream(ctx, nil)
			if err != nil {
				return err
			}
			var value int
			_, _ = fmt.Fscan(answer.Body, &value)
			_ = answer.Body.Close()
			_, err = client.Upload(ctx, stream([]byte(strconv.Itoa(value+1))), &blockblob.UploadOptions{
				AccessConditions: when(&blob.ModifiedAccessConditions{IfMatch: answer.ETag}),
			})
			if statusOf(err) != 412 {
				return err
			}
		}
	}
	must(t, errors.Join(together(20, step)...))
	equal(t, textOf(t, client.BlobClient()), "20")
}

func TestAppendsOfManyAreAllThere(t *testing.T) {
	log := newContainer(t).NewAppendBlobClient("log")
	_, err := log.Create(ctx, nil)
	must(t, err)
	places := make([]string, 100)
	must(t, errors.Join(together(100, func(number int) error {
		answer, err := log.AppendBlock(ctx, stream(fmt.Appendf(nil, "%04d\n", number)), nil)
		if err == nil {
			places[number] = *answer.BlobAppendOffset
		}
		return err
	})...))
	found := textOf(t, log.BlobClient())
	equal(t, len(found), 500)
	for number, place := range places {
		at, err := strconv.Atoi(place)
		must(t, err)
		equal(t, found[at:at+5], fmt.Sprintf("%04d\n", number))
	}
}
