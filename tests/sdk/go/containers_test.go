// Containers: create, list, delete, properties, metadata, leases, access.

package sdk

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

func listContainers(t *testing.T, options *blobs.ListContainersOptions) [][]*blobs.ContainerItem {
	t.Helper()
	pages := [][]*blobs.ContainerItem{}
	for pager := blobService(t).NewListContainersPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		pages = append(pages, page.ContainerItems)
	}
	return pages
}

func containerNames(pages [][]*blobs.ContainerItem) []string {
	names := []string{}
	for _, page := range pages {
		for _, item := range page {
			names = append(names, *item.Name)
		}
	}
	return names
}

func TestContainersAreCreatedListedAndDeleted(t *testing.T) {
	name := freshContainerName()
	client := blobService(t).NewContainerClient(name)
	_, err := client.GetProperties(ctx, nil)
	refused(t, err, 404, "ContainerNotFound")
	_, err = client.Create(ctx, &container.CreateOptions{Metadata: withMetadata("color", "red")})
	must(t, err)
	equal(t, containerNames(listContainers(t, &blobs.ListContainersOptions{Prefix: &name})), []string{name})
	_, err = client.Create(ctx, nil)
	refused(t, err, 409, "ContainerAlreadyExists")
	found, err := client.GetProperties(ctx, nil)
	must(t, err)
	equal(t, lower(found.Metadata), map[string]string{"color": "red"})
	_, err = client.Delete(ctx, nil)
	must(t, err)
	equal(t, containerNames(listContainers(t, &blobs.ListContainersOptions{Prefix: &name})), []string{})
	_, err = client.Delete(ctx, nil)
	refused(t, err, 404, "ContainerNotFound")
}

func TestContainersArePaged(t *testing.T) {
	prefix, names := freshContainerName(), []string{}
	for _, letter := range "abcde" {
		name := prefix + "-" + string(letter)
		names = append(names, name)
		_, err := blobService(t).CreateContainer(ctx, name, nil)
		must(t, err)
	}
	pages := listContainers(t, &blobs.ListContainersOptions{Prefix: &prefix, MaxResults: pointer(int32(2))})
	equal(t, []int{len(pages[0]), len(pages[1]), len(pages[2])}, []int{2, 2, 1})
	equal(t, containerNames(pages), names)
	for _, name := range names {
		_, err := blobService(t).DeleteContainer(ctx, name, nil)
		must(t, err)
	}
}

func TestContainerNames(t *testing.T) {
	for name, code := range map[string]string{
		"UPPER": "InvalidResourceName", "under_score": "InvalidResourceName", "two--dashes": "InvalidResourceName",
		"ab": "OutOfRangeInput",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := blobService(t).CreateContainer(ctx, name, nil)
			refused(t, err, 400, code)
		})
	}
}

func TestContainerMetadata(t *testing.T) {
	box := newContainer(t)
	_, err := box.SetMetadata(ctx, &container.SetMetadataOptions{Metadata: withMetadata("a", "1", "b", "2")})
	must(t, err)
	found, err := box.GetProperties(ctx, nil)
	must(t, err)
	equal(t, lower(found.Metadata), map[string]string{"a": "1", "b": "2"})
	_, err = box.SetMetadata(ctx, nil)
	must(t, err)
	found, err = box.GetProperties(ctx, nil)
	must(t, err)
	equal(t, len(found.Metadata), 0)
}

func TestContainerLeases(t *testing.T) {
	box := newContainer(t)
	holder, err := lease.NewContainerClient(box, nil)
	must(t, err)
	_, err = holder.AcquireLease(ctx, 60, nil)
	must(t, err)
	found, err := box.GetProperties(ctx, nil)
	must(t, err)
	equal(t, string(*found.LeaseState)+string(*found.LeaseStatus)+string(*found.LeaseDuration), "leasedlockedfixed")
	_, err = box.Delete(ctx, nil)
	refused(t, err, 412, "LeaseIdMissing")
	_, err = holder.RenewLease(ctx, nil)
	must(t, err)
	broken, err := holder.BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: pointer(int32(0))})
	must(t, err)
	equal(t, *broken.LeaseTime, int32(0))
	_, err = holder.ReleaseLease(ctx, nil)
	must(t, err)
}

func TestContainerAccess(t *testing.T) {
	box := newContainer(t)
	putBlob(t, box, "b", "public", nil)
	status := func(url string) int {
		answer, err := http.Get(url)
		must(t, err)
		must(t, answer.Body.Close())
		return answer.StatusCode
	}
	blobURL, listURL := box.NewBlobClient("b").URL(), box.URL()+"?restype=container&comp=list"
	equal(t, []int{status(blobURL), status(listURL)}, []int{404, 404})
	for _, level := range []container.PublicAccessType{"blob", "container"} {
		_, err := box.SetAccessPolicy(ctx, &container.SetAccessPolicyOptions{Access: &level})
		must(t, err)
		found, err := box.GetAccessPolicy(ctx, nil)
		must(t, err)
		equal(t, *found.BlobPublicAccess, level)
		equal(t, status(blobURL), 200)
	}
	equal(t, status(listURL), 200)
	_, err := box.SetAccessPolicy(ctx, nil)
	must(t, err)
	equal(t, status(blobURL), 404)
}

func TestContainerPolicies(t *testing.T) {
	box := newContainer(t)
	policies := func(count int) *container.SetAccessPolicyOptions {
		options := &container.SetAccessPolicyOptions{}
		for n := range count {
			options.ContainerACL = append(options.ContainerACL, &container.SignedIdentifier{
				ID:           pointer(string(rune('a' + n))),
				AccessPolicy: &container.AccessPolicy{Permission: pointer("rl"), Expiry: pointer(fromNow(1))},
			})
		}
		return options
	}
	_, err := box.SetAccessPolicy(ctx, policies(5))
	must(t, err)
	found, err := box.GetAccessPolicy(ctx, nil)
	must(t, err)
	equal(t, len(found.SignedIdentifiers), 5)
	equal(t, *found.SignedIdentifiers[4].ID+*found.SignedIdentifiers[4].AccessPolicy.Permission, "erl")
	_, err = box.SetAccessPolicy(ctx, policies(6))
	refused(t, err, 400, "InvalidXmlDocument")
}

func TestAccountInformation(t *testing.T) {
	found, err := blobService(t).GetAccountInfo(ctx, nil)
	must(t, err)
	equal(t, string(*found.SKUName)+" "+string(*found.AccountKind), "Standard_LRS StorageV2")
}
