// Queues: create, list, delete, metadata, and the count of messages.

package sdk

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

func listQueues(t *testing.T, options *azqueue.ListQueuesOptions) [][]*azqueue.Queue {
	t.Helper()
	pages := [][]*azqueue.Queue{}
	for pager := queueService(t).NewListQueuesPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		pages = append(pages, page.Queues)
	}
	return pages
}

func queueNames(pages [][]*azqueue.Queue) []string {
	names := []string{}
	for _, queue := range slices.Concat(pages...) {
		names = append(names, *queue.Name)
	}
	return names
}

func withMetadata(pairs ...string) map[string]*string {
	metadata := map[string]*string{}
	for n := 0; n < len(pairs); n += 2 {
		metadata[pairs[n]] = &pairs[n+1]
	}
	return metadata
}

// metadataOf is a queue's metadata. Names come in the form that Go gives to headers, so their case is dropped.
func metadataOf(t *testing.T, queue *azqueue.QueueClient) map[string]string {
	t.Helper()
	answer, err := queue.GetProperties(ctx, nil)
	must(t, err)
	found := map[string]string{}
	for name, value := range answer.Metadata {
		found[strings.ToLower(name)] = *value
	}
	return found
}

// fiveQueues are queues with a common prefix; every other one has metadata.
func fiveQueues(t *testing.T) (prefix string, names []string) {
	t.Helper()
	prefix = freshQueueName()
	service := queueService(t)
	for n, letter := range "abcde" {
		options := &azqueue.CreateOptions{}
		if n%2 == 1 {
			options.Metadata = withMetadata("letter", string(letter))
		}
		name := prefix + "-" + string(letter)
		_, err := service.CreateQueue(ctx, name, options)
		must(t, err)
		t.Cleanup(func() { _, _ = service.DeleteQueue(ctx, name, nil) })
		names = append(names, name)
	}
	return prefix, names
}

func TestACreatedQueueIsListedAndADeletedOneIsNot(t *testing.T) {
	name := freshQueueName()
	options := &azqueue.ListQueuesOptions{Prefix: &name}
	equal(t, queueNames(listQueues(t, options)), []string{})
	_, err := queueService(t).CreateQueue(ctx, name, nil)
	must(t, err)
	equal(t, queueNames(listQueues(t, options)), []string{name})
	_, err = queueService(t).DeleteQueue(ctx, name, nil)
	must(t, err)
	equal(t, queueNames(listQueues(t, options)), []string{})
}

func TestCreatingAQueueAgain(t *testing.T) {
	queue := queueService(t).NewQueueClient(freshQueueName())
	create := func(pairs ...string) (int, error) {
		var answer *http.Response
		_, err := queue.Create(runtime.WithCaptureResponse(ctx, &answer), &azqueue.CreateOptions{Metadata: withMetadata(pairs...)})
		return answer.StatusCode, err
	}
	status, err := create("color", "red")
	must(t, err)
	equal(t, status, 201)
	send(t, queue, "stays")
	for _, name := range []string{"color", "COLOR"} {
		status, err = create(name, "red")
		must(t, err)
		equal(t, status, 204)
	}
	for _, pairs := range [][]string{{}, {"color", "blue"}, {"color", "red", "size", "big"}} {
		_, err = create(pairs...)
		refused(t, err, 409, "QueueAlreadyExists", "The specified queue already exists.")
	}
	equal(t, peekTexts(t, queue), []string{"stays"})
	equal(t, metadataOf(t, queue), map[string]string{"color": "red"})
}

func TestAQueueCreatedAgainIsEmpty(t *testing.T) {
	queue := newQueue(t)
	send(t, queue, "gone")
	_, err := queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: withMetadata("old", "yes")})
	must(t, err)
	_, err = queue.Delete(ctx, nil)
	must(t, err)
	_, err = queue.Create(ctx, nil)
	must(t, err)
	equal(t, peekTexts(t, queue), []string{})
	equal(t, messageCount(t, queue), int32(0))
	equal(t, metadataOf(t, queue), map[string]string{})
}

func TestAMissingQueueIsNotFound(t *testing.T) {
	missing := queueService(t).NewQueueClient(freshQueueName())
	const receipt = "AgAAAAMAAAAAAAAAHFrsOFDq2AE="
	for name, call := range map[string]func() error{
		"delete":         func() error { _, err := missing.Delete(ctx, nil); return err },
		"properties":     func() error { _, err := missing.GetProperties(ctx, nil); return err },
		"metadata":       func() error { _, err := missing.SetMetadata(ctx, nil); return err },
		"get policy":     func() error { _, err := missing.GetAccessPolicy(ctx, nil); return err },
		"set policy":     func() error { _, err := missing.SetAccessPolicy(ctx, nil); return err },
		"send":           func() error { _, err := missing.EnqueueMessage(ctx, "text", nil); return err },
		"receive":        func() error { _, err := missing.DequeueMessage(ctx, nil); return err },
		"peek":           func() error { _, err := missing.PeekMessage(ctx, nil); return err },
		"clear":          func() error { _, err := missing.ClearMessages(ctx, nil); return err },
		"update":         func() error { _, err := missing.UpdateMessage(ctx, "id", receipt, "x", nil); return err },
		"delete message": func() error { _, err := missing.DeleteMessage(ctx, "id", receipt, nil); return err },
	} {
		t.Run(name, func(t *testing.T) { refused(t, call(), 404, "QueueNotFound") })
	}
}

func TestQueueNames(t *testing.T) {
	service := queueService(t)
	for _, name := range []string{"UPPER", "under_score", "-first", "last-", "two--dashes", "dot.ted"} {
		_, err := service.CreateQueue(ctx, name, nil)
		refused(t, err, 400, "InvalidResourceName")
	}
	for _, name := range []string{"ab", strings.Repeat("a", 64)} {
		_, err := service.CreateQueue(ctx, name, nil)
		refused(t, err, 400, "OutOfRangeInput")
	}
	fresh := freshQueueName()
	for _, name := range []string{fresh + strings.Repeat("x", 63-len(fresh)), fresh[1:4]} {
		_, err := service.CreateQueue(ctx, name, nil)
		must(t, err)
		_, err = service.DeleteQueue(ctx, name, nil)
		must(t, err)
	}
}

func TestListingQueuesByPrefix(t *testing.T) {
	prefix, names := fiveQueues(t)
	equal(t, queueNames(listQueues(t, &azqueue.ListQueuesOptions{Prefix: &prefix})), names)
	equal(t, queueNames(listQueues(t, &azqueue.ListQueuesOptions{Prefix: &names[3]})), names[3:4])
	all := queueNames(listQueues(t, nil))
	for _, name := range names {
		equal(t, slices.Contains(all, name), true)
	}
}

func TestListingQueuesGivesMetadataOnlyWhenAsked(t *testing.T) {
	prefix, _ := fiveQueues(t)
	for _, asked := range []bool{false, true} {
		options := &azqueue.ListQueuesOptions{Prefix: &prefix, Include: azqueue.ListQueuesInclude{Metadata: asked}}
		for n, queue := range slices.Concat(listQueues(t, options)...) {
			if asked && n%2 == 1 {
				equal(t, text(queue.Metadata["letter"]), string("abcde"[n]))
			} else {
				equal(t, len(queue.Metadata), 0)
			}
		}
	}
}

func TestListingQueuesPageByPage(t *testing.T) {
	prefix, names := fiveQueues(t)
	for _, size := range []int{1, 2, 5, 6} {
		pages := listQueues(t, &azqueue.ListQueuesOptions{Prefix: &prefix, MaxResults: pointer(int32(size))})
		equal(t, queueNames(pages), names)
		equal(t, len(pages), (5+size-1)/size)
		equal(t, len(pages[0]), min(size, 5))
	}
	pager := queueService(t).NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: &prefix, MaxResults: pointer(int32(2))})
	first, err := pager.NextPage(ctx)
	must(t, err)
	equal(t, *first.Prefix, prefix)
	rest := listQueues(t, &azqueue.ListQueuesOptions{Prefix: &prefix, Marker: first.NextMarker})
	equal(t, queueNames(rest), names[2:])
	_, err = queueService(t).NewListQueuesPager(&azqueue.ListQueuesOptions{MaxResults: pointer(int32(0))}).NextPage(ctx)
	refused(t, err, 400, "OutOfRangeQueryParameterValue")
}

func TestQueueMetadataIsReplacedAsAWhole(t *testing.T) {
	queue := newQueue(t)
	set := func(pairs ...string) error {
		_, err := queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: withMetadata(pairs...)})
		return err
	}
	must(t, set("hello", "world", "number", "43"))
	equal(t, metadataOf(t, queue), map[string]string{"hello": "world", "number": "43"})
	must(t, set("other", "1"))
	equal(t, metadataOf(t, queue), map[string]string{"other": "1"})
	refused(t, set("with-dash", "1"), 400, "InvalidMetadata")
	refused(t, set("a", strings.Repeat("x", 8192)), 400, "MetadataTooLarge")
	equal(t, metadataOf(t, queue), map[string]string{"other": "1"})
	must(t, set())
	equal(t, metadataOf(t, queue), map[string]string{})
}

func TestTheCountIsOfVisibleAndInvisibleMessages(t *testing.T) {
	queue := newQueue(t)
	equal(t, messageCount(t, queue), int32(0))
	sendWith(t, queue, "later", &azqueue.EnqueueMessageOptions{VisibilityTimeout: pointer(int32(60))})
	send(t, queue, "now")
	equal(t, messageCount(t, queue), int32(2))
	taken := receiveOne(t, queue)
	equal(t, messageCount(t, queue), int32(2))
	_, err := queue.DeleteMessage(ctx, *taken.MessageID, *taken.PopReceipt, nil)
	must(t, err)
	equal(t, messageCount(t, queue), int32(1))
	_, err = queue.ClearMessages(ctx, nil)
	must(t, err)
	equal(t, messageCount(t, queue), int32(0))
}

func TestQueueClientsFromAConnectionStringAndFromAURL(t *testing.T) {
	queue, name := namedQueue(t)
	equal(t, queue.URL(), queueEndpoint()+"/"+name)
	fromString, err := azqueue.NewQueueClientFromConnectionString(connectionString, name, queueOptions())
	must(t, err)
	send(t, fromString, "one")
	fromURL, err := azqueue.NewQueueClientWithSharedKeyCredential(queue.URL(), queueKey(t), queueOptions())
	must(t, err)
	send(t, fromURL, "two")
	equal(t, peekTexts(t, queue), []string{"one", "two"})
}
