// Access policies: stored with the table, returned as set, at most five.

package sdk

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	policyStart  = time.Date(2021, 6, 8, 2, 5, 9, 0, time.UTC)
	policyExpiry = time.Date(2021, 6, 8, 3, 10, 9, 250_000_000, time.UTC)
)

// signed is an identifier with a policy; a zero time or empty text is left out.
func signed(id string, start, expiry time.Time, permission string) *aztables.SignedIdentifier {
	policy := &aztables.AccessPolicy{}
	if !start.IsZero() {
		policy.Start = &start
	}
	if !expiry.IsZero() {
		policy.Expiry = &expiry
	}
	if permission != "" {
		policy.Permission = &permission
	}
	return &aztables.SignedIdentifier{ID: &id, AccessPolicy: policy}
}

func setPolicies(table *aztables.Client, identifiers ...*aztables.SignedIdentifier) error {
	_, err := table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: identifiers})
	return err
}

func policiesOf(t *testing.T, table *aztables.Client) []*aztables.SignedIdentifier {
	t.Helper()
	answer, err := table.GetAccessPolicy(ctx, nil)
	must(t, err)
	return answer.SignedIdentifiers
}

func policyIDs(t *testing.T, table *aztables.Client) []string {
	t.Helper()
	ids := []string{}
	for _, one := range policiesOf(t, table) {
		ids = append(ids, *one.ID)
	}
	return ids
}

func TestANewTableHasNoPolicies(t *testing.T) {
	equal(t, policyIDs(t, newTable(t)), []string{})
}

func TestPoliciesComeBackAsTheyWereSetInOrder(t *testing.T) {
	table := newTable(t)
	sent := []*aztables.SignedIdentifier{
		signed("full", policyStart, policyExpiry, "raud"), signed("second", policyStart, policyExpiry, "r"),
	}
	must(t, setPolicies(table, sent...))
	found := policiesOf(t, table)
	equal(t, len(found), 2)
	for n := range sent {
		equal(t, *found[n].ID, *sent[n].ID)
		equal(t, found[n].AccessPolicy.Start.Equal(policyStart), true)
		equal(t, found[n].AccessPolicy.Expiry.Equal(policyExpiry), true)
		equal(t, *found[n].AccessPolicy.Permission, *sent[n].AccessPolicy.Permission)
	}
}

func TestEachFieldOfAPolicyIsOptional(t *testing.T) {
	table := newTable(t)
	never := time.Time{}
	must(t, setPolicies(table,
		signed("start", policyStart, never, ""), signed("expiry", never, policyExpiry, ""),
		signed("permission", never, never, "a"), signed("none", never, never, "")))
	shape := map[string][3]bool{}
	for _, one := range policiesOf(t, table) {
		policy := one.AccessPolicy
		if policy == nil {
			policy = &aztables.AccessPolicy{}
		}
		shape[*one.ID] = [3]bool{policy.Start != nil, policy.Expiry != nil, policy.Permission != nil}
	}
	equal(t, shape, map[string][3]bool{
		"start": {true, false, false}, "expiry": {false, true, false}, "permission": {false, false, true}, "none": {},
	})
}

func TestSettingReplacesAllPoliciesAndNoneClearsThem(t *testing.T) {
	table := newTable(t)
	one := func(id string) *aztables.SignedIdentifier { return signed(id, policyStart, policyExpiry, "r") }
	must(t, setPolicies(table, one("a"), one("b")))
	must(t, setPolicies(table, one("c")))
	equal(t, policyIDs(t, table), []string{"c"})
	must(t, setPolicies(table))
	equal(t, policyIDs(t, table), []string{})
}

func TestFivePoliciesAreAcceptedAndSixRefused(t *testing.T) {
	table := newTable(t)
	six := []*aztables.SignedIdentifier{}
	for _, id := range "abcdef" {
		six = append(six, signed(string(id), policyStart, policyExpiry, "r"))
	}
	must(t, setPolicies(table, six[:5]...))
	// The service refuses, and the SDK reports that in its own words.
	equal(t, setPolicies(table, six...).Error(), "you cannot set more than five (5) access policies at a time")
	equal(t, policyIDs(t, table), []string{"a", "b", "c", "d", "e"})
}

func TestAnIdentifierHas64CharactersAtMostOfAnyKind(t *testing.T) {
	table := newTable(t)
	longest := "ü<&>\"' xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	must(t, setPolicies(table, signed(longest, policyStart, policyExpiry, "r")))
	equal(t, len([]rune(longest)), 64)
	equal(t, policyIDs(t, table), []string{longest})
	refused(t, setPolicies(table, signed(longest+"x", policyStart, policyExpiry, "r")), 400, "InvalidXmlDocument")
	equal(t, policyIDs(t, table), []string{longest})
}

func TestPoliciesGoWithTheirTable(t *testing.T) {
	table := newTable(t)
	must(t, setPolicies(table, signed("a", policyStart, policyExpiry, "r")))
	_, err := table.Delete(ctx, nil)
	must(t, err)
	_, err = table.CreateTable(ctx, nil)
	must(t, err)
	equal(t, policyIDs(t, table), []string{})
}

func TestPoliciesOfAMissingTableAreNotFound(t *testing.T) {
	missing := service.NewClient(freshName())
	_, err := missing.GetAccessPolicy(ctx, nil)
	refused(t, err, 404, string(aztables.TableNotFound))
	refused(t, setPolicies(missing), 404, string(aztables.TableNotFound))
}
