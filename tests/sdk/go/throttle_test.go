// Scalability targets (`--throttle`): the client's own retries get all the work done, at the pace of the target.

package sdk

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

const (
	target      = 40
	insertCount = 100
	callerCount = 10
	// Some may come at once after a pause; the rest cannot come faster than the target.
	shortest = (insertCount - 10) * time.Second / target
)

// patience is the default policy with shorter pauses, and more of them in return.
var patience = policy.RetryOptions{MaxRetries: 30, RetryDelay: 20 * time.Millisecond, MaxRetryDelay: 200 * time.Millisecond}

// throttledTable is a table on a server with a target of its own.
func throttledTable(t *testing.T, retries policy.RetryOptions) *aztables.Client {
	t.Helper()
	tables, _ := ownServer(t, fmt.Sprintf("--throttle=partition=%d", target))
	credential, err := aztables.NewSharedKeyCredential(ownAccount, ownKey)
	must(t, err)
	options := &aztables.ClientOptions{}
	options.Retry = retries
	client, err := aztables.NewServiceClientWithSharedKey(tables, credential, options)
	must(t, err)
	_, err = client.CreateTable(ctx, "people", nil)
	must(t, err)
	return client.NewClient("people")
}

func numbered(partition string, n int) []byte {
	return entityIn(partition, fmt.Sprintf("%03d", n), properties{"n": int32(n)})
}

func TestRetriesGetAllTheWorkOfParallelCallersDone(t *testing.T) {
	table := throttledTable(t, patience)
	started := time.Now()
	must(t, errors.Join(together(callerCount, func(caller int) error {
		for n := caller; n < insertCount; n += callerCount {
			if _, err := table.AddEntity(ctx, numbered("hot", n), nil); err != nil {
				return err
			}
		}
		return nil
	})...))
	if took := time.Since(started); took < shortest {
		t.Fatalf("%d inserts took only %v", insertCount, took)
	}
	for n, found := range list(t, table, nil) {
		equal(t, found.Properties, properties{"n": int32(n)})
	}
	equal(t, len(list(t, table, nil)), insertCount)
}

func TestRetriesGetTransactionsDone(t *testing.T) {
	table := throttledTable(t, patience)
	for first := range 5 {
		all := actions{}
		for n := range 20 {
			all = append(all, action(opAdd, fmt.Sprintf("%03d", 20*first+n), nil))
		}
		submit(t, table, all)
	}
	equal(t, len(list(t, table, nil)), 100)
}

func TestWithoutRetriesTheServerSaysThatItIsBusyAndOtherPartitionsGoOn(t *testing.T) {
	table := throttledTable(t, policy.RetryOptions{MaxRetries: -1})
	refusals := 0
	for _, err := range together(insertCount, func(n int) error {
		_, err := table.AddEntity(ctx, numbered("hot", n), nil)
		return err
	}) {
		if err != nil {
			refused(t, err, 503, "ServerBusy")
			refusals++
		}
	}
	if refusals == 0 || refusals == insertCount {
		t.Fatalf("%d of %d were refused", refusals, insertCount)
	}
	add(t, table, numbered("calm", 0))
	equal(t, len(list(t, table, nil)), insertCount-refusals+1)
}

func TestRetriesGetAllTheMessagesOfParallelCallersSent(t *testing.T) {
	_, queues := ownServer(t, fmt.Sprintf("--throttle=partition=%d", target))
	credential, err := azqueue.NewSharedKeyCredential(ownAccount, ownKey)
	must(t, err)
	options := &azqueue.ClientOptions{}
	options.Retry = patience
	client, err := azqueue.NewServiceClientWithSharedKeyCredential(queues, credential, options)
	must(t, err)
	queue := client.NewQueueClient("work")
	_, err = queue.Create(ctx, nil)
	must(t, err)
	started := time.Now()
	must(t, errors.Join(together(callerCount, func(caller int) error {
		for n := caller; n < insertCount; n += callerCount {
			if _, err := queue.EnqueueMessage(ctx, fmt.Sprint(n), nil); err != nil {
				return err
			}
		}
		return nil
	})...))
	if took := time.Since(started); took < shortest {
		t.Fatalf("%d messages took only %v", insertCount, took)
	}
	equal(t, messageCount(t, queue), int32(insertCount))
}
