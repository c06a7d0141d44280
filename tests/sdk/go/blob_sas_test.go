// Shared access signatures for blobs from the SDK's own generators: what each field allows and refuses.

package sdk

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

func containerHolder(t *testing.T, name, token string) *container.Client {
	t.Helper()
	options := &container.ClientOptions{ClientOptions: blobOptions().ClientOptions}
	client, err := container.NewClientWithNoCredential(blobEndpoint()+"/"+name+"?"+token, options)
	must(t, err)
	return client
}

func blobSAS(t *testing.T, name, letters string, change func(*sas.BlobSignatureValues)) string {
	t.Helper()
	values := sas.BlobSignatureValues{ContainerName: name, Permissions: letters, ExpiryTime: fromNow(1)}
	if change != nil {
		change(&values)
	}
	token, err := values.SignWithSharedKey(blobKey(t))
	must(t, err)
	return token.Encode()
}

func blobAccountSAS(t *testing.T, letters, types string) string {
	t.Helper()
	values := sas.AccountSignatureValues{Permissions: letters, ResourceTypes: types, ExpiryTime: fromNow(1)}
	token, err := values.SignWithSharedKey(blobKey(t))
	must(t, err)
	return token.Encode()
}

func errorOf[T any](_ T, err error) error { return err }

// blobVerbs are operations with the letters that allow them.
var blobVerbs = map[string]struct {
	letters string
	call    func(*container.Client) error
}{
	"read": {"r", func(box *container.Client) error {
		return errorOf(box.NewBlobClient("old").DownloadStream(ctx, nil))
	}},
	"properties": {"r", func(box *container.Client) error {
		return errorOf(box.NewBlobClient("old").GetProperties(ctx, nil))
	}},
	"create": {"cw", func(box *container.Client) error {
		return errorOf(box.NewBlockBlobClient("new").Upload(ctx, stream(nil), nil))
	}},
	"overwrite": {"w", func(box *container.Client) error {
		return errorOf(box.NewBlockBlobClient("old").Upload(ctx, stream(nil), nil))
	}},
	"stage": {"w", func(box *container.Client) error {
		return errorOf(box.NewBlockBlobClient("new").StageBlock(ctx, blockID("1"), stream([]byte("x")), nil))
	}},
	"append": {"aw", func(box *container.Client) error {
		return errorOf(box.NewAppendBlobClient("log").AppendBlock(ctx, stream([]byte("x")), nil))
	}},
	"metadata": {"w", func(box *container.Client) error {
		return errorOf(box.NewBlobClient("old").SetMetadata(ctx, nil, nil))
	}},
	"snapshot": {"cw", func(box *container.Client) error {
		return errorOf(box.NewBlobClient("old").CreateSnapshot(ctx, nil))
	}},
	"tags": {"t", func(box *container.Client) error {
		return errorOf(box.NewBlobClient("old").GetTags(ctx, nil))
	}},
	"delete": {"d", func(box *container.Client) error {
		return errorOf(box.NewBlobClient("old").Delete(ctx, nil))
	}},
	"list": {"l", func(box *container.Client) error {
		return errorOf(box.NewListBlobsFlatPager(nil).NextPage(ctx))
	}},
	"find": {"f", func(box *container.Client) error {
		return errorOf(box.FilterBlobs(ctx, "a = 'b'", nil))
	}},
}

func filledContainer(t *testing.T) (*container.Client, string) {
	t.Helper()
	box, name := namedContainer(t)
	putBlob(t, box, "old", "content", nil)
	_, err := box.NewAppendBlobClient("log").Create(ctx, nil)
	must(t, err)
	return box, name
}

func TestContainerSASAllowsItsVerbsAndNoOthers(t *testing.T) {
	for verb, row := range blobVerbs {
		for _, letter := range []string{"r", "a", "c", "w", "d", "l", "t", "f"} {
			t.Run(verb+" with "+letter, func(t *testing.T) {
				_, name := filledContainer(t)
				err := row.call(containerHolder(t, name, blobSAS(t, name, letter, nil)))
				if strings.Contains(row.letters, letter) {
					must(t, err)
				} else if refusal, ok := err.(*azcore.ResponseError); !ok || refusal.StatusCode != 403 {
					t.Fatalf("expected a refusal, got %v", err)
				} else if refusal.ErrorCode != "AuthorizationPermissionMismatch" &&
					refusal.ErrorCode != "UnauthorizedBlobOverwrite" {
					t.Fatalf("refused with %s", refusal.ErrorCode)
				}
			})
		}
	}
}

func TestBlobAndSnapshotSAS(t *testing.T) {
	box, name := filledContainer(t)
	only := containerHolder(t, name, blobSAS(t, name, "r", func(v *sas.BlobSignatureValues) { v.BlobName = "old" }))
	equal(t, textOf(t, only.NewBlobClient("old")), "content")
	_, err := only.NewBlobClient("log").GetProperties(ctx, nil)
	refused(t, err, 403, "AuthenticationFailed")
	taken, err := box.NewBlobClient("old").CreateSnapshot(ctx, nil)
	must(t, err)
	putBlob(t, box, "old", "changed", nil)
	moment, err := time.Parse("2006-01-02T15:04:05.0000000Z07:00", *taken.Snapshot)
	must(t, err)
	signed := blobSAS(t, name, "r", func(v *sas.BlobSignatureValues) { v.BlobName, v.SnapshotTime = "old", moment })
	holder := containerHolder(t, name, signed)
	old, err := holder.NewBlobClient("old").WithSnapshot(*taken.Snapshot)
	must(t, err)
	equal(t, textOf(t, old), "content")
	_, err = holder.NewBlobClient("old").GetProperties(ctx, nil)
	refused(t, err, 403, "AuthenticationFailed")
}

func TestFieldsOfBlobSAS(t *testing.T) {
	_, name := filledContainer(t)
	read := func(change func(*sas.BlobSignatureValues)) error {
		box := containerHolder(t, name, blobSAS(t, name, "r", change))
		return errorOf(box.NewBlobClient("old").GetProperties(ctx, nil))
	}
	must(t, read(func(v *sas.BlobSignatureValues) { v.StartTime = fromNow(-1) }))
	refused(t, read(func(v *sas.BlobSignatureValues) { v.StartTime, v.ExpiryTime = fromNow(1), fromNow(2) }),
		403, "AuthenticationFailed")
	refused(t, read(func(v *sas.BlobSignatureValues) { v.ExpiryTime = fromNow(-1) }), 403, "AuthenticationFailed")
	must(t, read(func(v *sas.BlobSignatureValues) { v.IPRange.Start = net.ParseIP("127.0.0.1") }))
	refused(t, read(func(v *sas.BlobSignatureValues) { v.IPRange.Start = net.ParseIP("10.0.0.1") }),
		403, "AuthorizationSourceIPMismatch")
	refused(t, read(func(v *sas.BlobSignatureValues) { v.Protocol = sas.ProtocolHTTPS }),
		403, "AuthorizationProtocolMismatch")
}

func TestStoredPoliciesOfContainers(t *testing.T) {
	box, name := filledContainer(t)
	set := func(letters string) {
		_, err := box.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{
			ContainerACL: []*container.SignedIdentifier{{
				ID:           pointer("p"),
				AccessPolicy: &container.AccessPolicy{Permission: &letters, Expiry: pointer(fromNow(1))},
			}},
		})
		must(t, err)
	}
	token := blobSAS(t, name, "", func(v *sas.BlobSignatureValues) {
		v.Identifier, v.ExpiryTime = "p", time.Time{}
	})
	read := func() error {
		return errorOf(containerHolder(t, name, token).NewBlobClient("old").GetProperties(ctx, nil))
	}
	refused(t, read(), 403, "AuthenticationFailed")
	set("r")
	must(t, read())
	set("w")
	refused(t, read(), 403, "AuthorizationPermissionMismatch")
}

func TestAccountSASForBlobs(t *testing.T) {
	_, name := filledContainer(t)
	service := func(letters, types string) *blobs.Client {
		client, err := blobs.NewClientWithNoCredential(
			blobEndpoint()+"?"+blobAccountSAS(t, letters, types), blobOptions())
		must(t, err)
		return client
	}
	list := func(client *blobs.Client) error { return errorOf(client.NewListContainersPager(nil).NextPage(ctx)) }
	must(t, list(service("l", "s")))
	refused(t, list(service("r", "s")), 403, "AuthorizationPermissionMismatch")
	refused(t, list(service("l", "co")), 403, "AuthorizationResourceTypeMismatch")
	properties := func(client *blobs.Client) error {
		return errorOf(client.NewContainerClient(name).GetProperties(ctx, nil))
	}
	must(t, properties(service("r", "c")))
	refused(t, properties(service("r", "so")), 403, "AuthorizationResourceTypeMismatch")
	policies := errorOf(service("rwdl", "sco").NewContainerClient(name).GetAccessPolicy(ctx, nil))
	refused(t, policies, 403, "AuthorizationFailure")
}
