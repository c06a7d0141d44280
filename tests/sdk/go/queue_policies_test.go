// Access policies of queues: stored with the queue, returned as set, at most five.

package sdk

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

// queuePolicy is an identifier with a policy; a zero time or empty text is left out.
func queuePolicy(id string, start, expiry time.Time, permission string) *azqueue.SignedIdentifier {
	policy := &azqueue.AccessPolicy{}
	if !start.IsZero() {
		policy.Start = &start
	}
	if !expiry.IsZero() {
		policy.Expiry = &expiry
	}
	if permission != "" {
		policy.Permission = &permission
	}
	return &azqueue.SignedIdentifier{ID: &id, AccessPolicy: policy}
}

func setQueuePolicies(queue *azqueue.QueueClient, identifiers ...*azqueue.SignedIdentifier) error {
	_, err := queue.SetAccessPolicy(ctx, &azqueue.SetAccessPolicyOptions{QueueACL: identifiers})
	return err
}

func queuePolicies(t *testing.T, queue *azqueue.QueueClient) []*azqueue.SignedIdentifier {
	t.Helper()
	answer, err := queue.GetAccessPolicy(ctx, nil)
	must(t, err)
	return answer.SignedIdentifiers
}

func queuePolicyIDs(t *testing.T, queue *azqueue.QueueClient) []string {
	t.Helper()
	ids := []string{}
	for _, one := range queuePolicies(t, queue) {
		ids = append(ids, *one.ID)
	}
	return ids
}

func readers(names string) []*azqueue.SignedIdentifier {
	found := []*azqueue.SignedIdentifier{}
	for _, name := range names {
		found = append(found, queuePolicy(string(name), time.Time{}, fromNow(1), "r"))
	}
	return found
}

func TestQueuePoliciesComeBackAsTheyWereSetInOrder(t *testing.T) {
	queue := newQueue(t)
	equal(t, queuePolicyIDs(t, queue), []string{})
	start, expiry := policyStart, policyExpiry.Truncate(time.Second)
	must(t, setQueuePolicies(queue, queuePolicy("full", start, expiry, "raup"), queuePolicy("second", start, expiry, "r")))
	found := queuePolicies(t, queue)
	equal(t, queuePolicyIDs(t, queue), []string{"full", "second"})
	for n, letters := range []string{"raup", "r"} {
		policy := found[n].AccessPolicy
		equal(t, []any{policy.Start.UTC(), policy.Expiry.UTC(), *policy.Permission}, []any{start, expiry, letters})
	}
}

func TestEachFieldOfAQueuePolicyIsOptional(t *testing.T) {
	queue := newQueue(t)
	must(t, setQueuePolicies(queue,
		queuePolicy("start", policyStart, time.Time{}, ""), queuePolicy("expiry", time.Time{}, policyExpiry, ""),
		queuePolicy("permission", time.Time{}, time.Time{}, "up")))
	set := map[string][3]bool{}
	for _, one := range queuePolicies(t, queue) {
		policy := one.AccessPolicy
		set[*one.ID] = [3]bool{policy.Start != nil, policy.Expiry != nil, policy.Permission != nil}
	}
	equal(t, set, map[string][3]bool{
		"start": {true, false, false}, "expiry": {false, true, false}, "permission": {false, false, true},
	})
}

func TestSettingReplacesAllQueuePoliciesAndNoneClearsThem(t *testing.T) {
	queue := newQueue(t)
	must(t, setQueuePolicies(queue, readers("ab")...))
	must(t, setQueuePolicies(queue, readers("c")...))
	equal(t, queuePolicyIDs(t, queue), []string{"c"})
	must(t, setQueuePolicies(queue))
	equal(t, queuePolicyIDs(t, queue), []string{})
}

func TestQueuePoliciesThatAreRefused(t *testing.T) {
	queue := newQueue(t)
	must(t, setQueuePolicies(queue, readers("abcde")...))
	longest := "ü<&>\"' xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	refused(t, setQueuePolicies(queue, readers("abcdef")...), 400, "InvalidXmlDocument")
	refused(t, setQueuePolicies(queue, queuePolicy(longest+"x", policyStart, policyExpiry, "r")), 400, "InvalidXmlDocument")
	refused(t, setQueuePolicies(queue, queuePolicy("a", policyStart, policyExpiry, "rd")), 400, "InvalidXmlDocument")
	equal(t, queuePolicyIDs(t, queue), []string{"a", "b", "c", "d", "e"})
	must(t, setQueuePolicies(queue, queuePolicy(longest, policyStart, policyExpiry, "r")))
	equal(t, queuePolicyIDs(t, queue), []string{longest})
}

func TestPoliciesGoWithTheirQueue(t *testing.T) {
	queue := newQueue(t)
	must(t, setQueuePolicies(queue, readers("a")...))
	_, err := queue.Delete(ctx, nil)
	must(t, err)
	_, err = queue.Create(ctx, nil)
	must(t, err)
	equal(t, queuePolicyIDs(t, queue), []string{})
}
