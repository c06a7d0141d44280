// Shared by the tests of queues: clients for the server under test, fresh queues, and messages as plain values.

package sdk

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

const (
	textBytesMax = 65_536
	week         = 604_800
)

// queueOptions switches retries off: they would hide exactly the answers that these tests look for.
func queueOptions() *azqueue.ClientOptions {
	options := &azqueue.ClientOptions{}
	options.Retry = policy.RetryOptions{MaxRetries: -1}
	return options
}

func queueEndpoint() string { return strings.TrimSuffix(setting("QueueEndpoint"), "/") }

func queueKey(t *testing.T) *azqueue.SharedKeyCredential {
	t.Helper()
	credential, err := azqueue.NewSharedKeyCredential(setting("AccountName"), setting("AccountKey"))
	must(t, err)
	return credential
}

func queueService(t *testing.T) *azqueue.ServiceClient {
	t.Helper()
	client, err := azqueue.NewServiceClientFromConnectionString(connectionString, queueOptions())
	must(t, err)
	return client
}

// secondaryQueues is a client of the secondary, which the SDK does not address by itself.
func secondaryQueues(t *testing.T) *azqueue.ServiceClient {
	t.Helper()
	client, err := azqueue.NewServiceClientWithSharedKeyCredential(
		queueEndpoint()+"-secondary", queueKey(t), queueOptions())
	must(t, err)
	return client
}

// freshQueueName is a queue name that no other test uses.
func freshQueueName() string { return "q" + freshName()[1:] }

// namedQueue is a fresh, empty queue and its name. It is deleted when the test ends.
func namedQueue(t *testing.T) (*azqueue.QueueClient, string) {
	t.Helper()
	name := freshQueueName()
	queue := queueService(t).NewQueueClient(name)
	_, err := queue.Create(ctx, nil)
	must(t, err)
	t.Cleanup(func() { _, _ = queue.Delete(ctx, nil) })
	return queue, name
}

func newQueue(t *testing.T) *azqueue.QueueClient {
	t.Helper()
	queue, _ := namedQueue(t)
	return queue
}

func send(t *testing.T, queue *azqueue.QueueClient, text string) *azqueue.EnqueuedMessage {
	t.Helper()
	return sendWith(t, queue, text, nil)
}

func sendWith(
	t *testing.T, queue *azqueue.QueueClient, text string, options *azqueue.EnqueueMessageOptions,
) *azqueue.EnqueuedMessage {
	t.Helper()
	answer, err := queue.EnqueueMessage(ctx, text, options)
	must(t, err)
	equal(t, len(answer.Messages), 1)
	return answer.Messages[0]
}

func receive(t *testing.T, queue *azqueue.QueueClient, count, visibility int32) []*azqueue.DequeuedMessage {
	t.Helper()
	options := &azqueue.DequeueMessagesOptions{NumberOfMessages: &count, VisibilityTimeout: &visibility}
	answer, err := queue.DequeueMessages(ctx, options)
	must(t, err)
	return answer.Messages
}

// receiveOne is the next message. It waits for one that becomes visible soon.
func receiveOne(t *testing.T, queue *azqueue.QueueClient) *azqueue.DequeuedMessage {
	t.Helper()
	for range 100 {
		answer, err := queue.DequeueMessage(ctx, nil)
		must(t, err)
		if len(answer.Messages) == 1 {
			return answer.Messages[0]
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("no message became visible")
	return nil
}

func peek(t *testing.T, queue *azqueue.QueueClient, count int32) []*azqueue.PeekedMessage {
	t.Helper()
	answer, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &count})
	must(t, err)
	return answer.Messages
}

func peekTexts(t *testing.T, queue *azqueue.QueueClient) []string {
	t.Helper()
	texts := []string{}
	for _, message := range peek(t, queue, 32) {
		texts = append(texts, text(message.MessageText))
	}
	return texts
}

func receivedTexts(messages []*azqueue.DequeuedMessage) []string {
	texts := []string{}
	for _, message := range messages {
		texts = append(texts, text(message.MessageText))
	}
	return texts
}

// text is a string that the SDK may leave out.
func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

func messageCount(t *testing.T, queue *azqueue.QueueClient) int32 {
	t.Helper()
	answer, err := queue.GetProperties(ctx, nil)
	must(t, err)
	return *answer.ApproximateMessagesCount
}

// around expects a time `seconds` from now. Times on the wire are cut to whole seconds.
func around(t *testing.T, moment *time.Time, seconds int) {
	t.Helper()
	if off := time.Until(*moment) - time.Duration(seconds)*time.Second; off.Abs() > 5*time.Second {
		t.Fatalf("%v is not %d seconds from now", moment, seconds)
	}
}
