package oldsdk

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/storage"
)

var (
	start  = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	expiry = time.Date(2099, 12, 31, 23, 59, 59, 0, time.UTC)
)

// noCode: the client looks for `Code` in an answer in XML, where the service of tables writes `m:code`.
const noCode = ""

func TestANewTableHasNoPolicies(t *testing.T) {
	found, err := newTable(t).GetPermissions(timeout, nil)
	must(t, err)
	equal(t, found, []storage.TableAccessPolicy{})
}

func TestPoliciesComeBackAsTheyWereSet(t *testing.T) {
	table := newTable(t)
	policies := []storage.TableAccessPolicy{
		{ID: "reader", StartTime: start, ExpiryTime: expiry, CanRead: true},
		{ID: "it's all <&> Grüße", StartTime: start, ExpiryTime: expiry, CanRead: true, CanAppend: true, CanUpdate: true, CanDelete: true},
	}
	must(t, table.SetPermissions(policies, timeout, nil))
	found, err := table.GetPermissions(timeout, nil)
	must(t, err)
	equal(t, found, policies)
	must(t, table.SetPermissions(policies[:1], timeout, nil))
	found, err = table.GetPermissions(timeout, nil)
	must(t, err)
	equal(t, found, policies[:1])
	must(t, table.SetPermissions(nil, timeout, nil))
	found, err = table.GetPermissions(timeout, nil)
	must(t, err)
	equal(t, found, []storage.TableAccessPolicy{})
}

func TestASixthPolicyIsRefused(t *testing.T) {
	six := []storage.TableAccessPolicy{}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		six = append(six, storage.TableAccessPolicy{ID: id, StartTime: start, ExpiryTime: expiry, CanRead: true})
	}
	refused(t, newTable(t).SetPermissions(six, timeout, nil), 400, noCode)
}

func TestPoliciesOfAMissingTableAreNotFound(t *testing.T) {
	missing := service.GetTableReference(freshName())
	_, err := missing.GetPermissions(timeout, nil)
	refused(t, err, 404, noCode)
	refused(t, missing.SetPermissions(nil, timeout, nil), 404, noCode)
}
