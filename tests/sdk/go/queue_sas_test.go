// Shared access signatures for queues from the SDK's own generators: what each field allows and refuses.

package sdk

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/sas"
)

func queueHolder(t *testing.T, name, token string) *azqueue.QueueClient {
	t.Helper()
	client, err := azqueue.NewQueueClientWithNoCredential(queueEndpoint()+"/"+name+"?"+token, queueOptions())
	must(t, err)
	return client
}

// queueSAS is a token for a queue, valid for an hour, after `change` has adjusted it.
func queueSAS(t *testing.T, name, letters string, change func(*sas.QueueSignatureValues)) string {
	t.Helper()
	values := sas.QueueSignatureValues{QueueName: name, Permissions: letters, ExpiryTime: fromNow(1)}
	if change != nil {
		change(&values)
	}
	token, err := values.SignWithSharedKey(queueKey(t))
	must(t, err)
	return token.Encode()
}

// queueAccountSAS is an account token for all resources of the Queue service, after `change` has adjusted it.
func queueAccountSAS(t *testing.T, letters string, change func(*sas.AccountSignatureValues)) string {
	t.Helper()
	values := sas.AccountSignatureValues{Permissions: letters, ResourceTypes: "sco", ExpiryTime: fromNow(1)}
	if change != nil {
		change(&values)
	}
	token, err := values.SignWithSharedKey(queueKey(t))
	must(t, err)
	return token.Encode()
}

// takenQueue is a queue of two messages, of which the first is taken.
func takenQueue(t *testing.T) (string, *azqueue.DequeuedMessage) {
	t.Helper()
	queue, name := namedQueue(t)
	send(t, queue, "taken")
	send(t, queue, "one")
	return name, receiveOne(t, queue)
}

// queueVerbs are operations with the letter of a queue SAS (none if it has no letter for them), the resource type and
// the letters of an account SAS.
var queueVerbs = map[string]struct {
	letter, resource, letters string
	call                      func(*azqueue.QueueClient, *azqueue.DequeuedMessage) error
}{
	"properties": {"r", "c", "r", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.GetProperties(ctx, nil)
		return err
	}},
	"metadata": {"", "c", "w", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.SetMetadata(ctx, nil)
		return err
	}},
	"create": {"", "c", "cw", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.Create(ctx, nil)
		return err
	}},
	"drop": {"", "c", "d", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.Delete(ctx, nil)
		return err
	}},
	"peek": {"r", "o", "r", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.PeekMessage(ctx, nil)
		return err
	}},
	"send": {"a", "o", "a", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.EnqueueMessage(ctx, "new", nil)
		return err
	}},
	"receive": {"p", "o", "p", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.DequeueMessage(ctx, nil)
		return err
	}},
	"update": {"u", "o", "u", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.UpdateMessage(ctx, *m.MessageID, *m.PopReceipt, "x", nil)
		return err
	}},
	"delete": {"p", "o", "p", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil)
		return err
	}},
	"clear": {"", "o", "d", func(q *azqueue.QueueClient, m *azqueue.DequeuedMessage) error {
		_, err := q.ClearMessages(ctx, nil)
		return err
	}},
}

func TestAQueueSASAllowsItsVerbsAndNoOthers(t *testing.T) {
	for verb, expected := range queueVerbs {
		for _, granted := range []string{"r", "a", "u", "p", "raup"} {
			t.Run(verb+" "+granted, func(t *testing.T) {
				name, taken := takenQueue(t)
				err := expected.call(queueHolder(t, name, queueSAS(t, name, granted, nil)), taken)
				switch {
				case expected.letter == "":
					refused(t, err, 403, outOfScope)
				case strings.Contains(granted, expected.letter):
					must(t, err)
				default:
					refused(t, err, 403, permissionMismatch)
				}
			})
		}
	}
}

func TestAnAccountSASAllowsItsVerbsOnQueues(t *testing.T) {
	for verb, expected := range queueVerbs {
		t.Run(verb, func(t *testing.T) {
			for _, granted := range strings.Split("rwdlacup", "") {
				name, taken := takenQueue(t)
				err := expected.call(queueHolder(t, name, queueAccountSAS(t, granted, nil)), taken)
				if strings.Contains(expected.letters, granted) {
					must(t, err)
				} else {
					refused(t, err, 403, permissionMismatch)
				}
			}
			for _, resource := range []string{"s", "c", "o"} {
				name, taken := takenQueue(t)
				token := queueAccountSAS(t, "rwdlacup", func(v *sas.AccountSignatureValues) { v.ResourceTypes = resource })
				err := expected.call(queueHolder(t, name, token), taken)
				if resource == expected.resource {
					must(t, err)
				} else {
					refused(t, err, 403, resourceTypeMismatch)
				}
			}
		})
	}
}

func TestAnAccountSASListsQueuesAndReadsProperties(t *testing.T) {
	for granted, refusals := range map[string][2]string{
		"l": {"", permissionMismatch}, "r": {permissionMismatch, ""}, "w": {permissionMismatch, permissionMismatch},
	} {
		client, err := azqueue.NewServiceClientWithNoCredential(
			queueEndpoint()+"/?"+queueAccountSAS(t, granted, nil), queueOptions())
		must(t, err)
		_, listed := client.NewListQueuesPager(nil).NextPage(ctx)
		_, read := client.GetServiceProperties(ctx, nil)
		for n, err := range []error{listed, read} {
			if refusals[n] == "" {
				must(t, err)
			} else {
				refused(t, err, 403, refusals[n])
			}
		}
	}
}

func TestFieldsOfAQueueSAS(t *testing.T) {
	queue, name := namedQueue(t)
	send(t, queue, "text")
	read := func(change func(*sas.QueueSignatureValues)) error {
		_, err := queueHolder(t, name, queueSAS(t, name, "r", change)).PeekMessage(ctx, nil)
		return err
	}
	address := func(text string) net.IP { return net.ParseIP(text) }
	must(t, read(func(v *sas.QueueSignatureValues) { v.StartTime = fromNow(-1) }))
	must(t, read(func(v *sas.QueueSignatureValues) { v.Protocol = sas.ProtocolHTTPSandHTTP }))
	must(t, read(func(v *sas.QueueSignatureValues) { v.IPRange = sas.IPRange{Start: address("127.0.0.1")} }))
	must(t, read(func(v *sas.QueueSignatureValues) {
		v.IPRange = sas.IPRange{Start: address("127.0.0.0"), End: address("127.0.0.255")}
	}))
	refused(t, read(func(v *sas.QueueSignatureValues) { v.StartTime, v.ExpiryTime = fromNow(1), fromNow(2) }), 403, badSignature)
	refused(t, read(func(v *sas.QueueSignatureValues) { v.ExpiryTime = fromNow(-1) }), 403, badSignature)
	refused(t, read(func(v *sas.QueueSignatureValues) { v.Protocol = sas.ProtocolHTTPS }), 403, "AuthorizationProtocolMismatch")
	refused(t, read(func(v *sas.QueueSignatureValues) { v.IPRange = sas.IPRange{Start: address("10.0.0.1")} }), 403,
		"AuthorizationSourceIPMismatch")
	refused(t, read(func(v *sas.QueueSignatureValues) { v.QueueName = "another" }), 403, badSignature)
	refused(t, read(func(v *sas.QueueSignatureValues) { v.Identifier = "missing" }), 403, badSignature)
}

func TestAnExpiredAccountSASOfQueues(t *testing.T) {
	_, name := namedQueue(t)
	token := queueAccountSAS(t, "r", func(v *sas.AccountSignatureValues) { v.ExpiryTime = fromNow(-1) })
	_, err := queueHolder(t, name, token).PeekMessage(ctx, nil)
	refused(t, err, 403, badSignature)
}

func TestURLsFromTheClientsOwnGeneratorsAreForHTTPS(t *testing.T) {
	queue, name := namedQueue(t)
	url, err := queue.GetSASURL(sas.QueuePermissions{Read: true}, fromNow(1), nil)
	must(t, err)
	client, err := azqueue.NewQueueClientWithNoCredential(url, queueOptions())
	must(t, err)
	// The protocol is checked after the signature, so the signature is right.
	_, err = client.PeekMessage(ctx, nil)
	refused(t, err, 403, "AuthorizationProtocolMismatch")

	url, err = queueService(t).GetSASURL(
		sas.AccountResourceTypes{Container: true}, sas.AccountPermissions{Read: true}, fromNow(1), nil)
	must(t, err)
	account, err := azqueue.NewServiceClientWithNoCredential(url, queueOptions())
	must(t, err)
	_, err = account.NewQueueClient(name).GetProperties(ctx, nil)
	refused(t, err, 403, "AuthorizationProtocolMismatch")
}

func TestStoredPoliciesOfAQueue(t *testing.T) {
	queue, name := namedQueue(t)
	stored := func(expiry time.Time, letters string) {
		must(t, setQueuePolicies(queue, queuePolicy("worker", time.Time{}, expiry, letters)))
	}
	token := queueSAS(t, name, "", func(v *sas.QueueSignatureValues) { v.Identifier, v.ExpiryTime = "worker", time.Time{} })
	client := queueHolder(t, name, token)
	read := func() error { _, err := client.PeekMessage(ctx, nil); return err }
	stored(fromNow(1), "r")
	must(t, read())
	_, err := client.EnqueueMessage(ctx, "text", nil)
	refused(t, err, 403, permissionMismatch)
	stored(fromNow(1), "a")
	refused(t, read(), 403, permissionMismatch)
	stored(fromNow(-1), "r")
	refused(t, read(), 403, badSignature)
	stored(time.Time{}, "r")
	refused(t, read(), 403, badSignature)
	must(t, setQueuePolicies(queue))
	refused(t, read(), 403, badSignature)
}

func TestWrongKeysAndNoCredentialsForQueues(t *testing.T) {
	_, name := namedQueue(t)
	_, err := queueHolder(t, name, "").PeekMessage(ctx, nil)
	refused(t, err, 401, "NoAuthenticationInformation")
	wrong, err := azqueue.NewSharedKeyCredential(setting("AccountName"), "d3Jvbmc=")
	must(t, err)
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(queueEndpoint()+"/"+name, wrong, queueOptions())
	must(t, err)
	_, err = client.PeekMessage(ctx, nil)
	refused(t, err, 403, badSignature)
}
