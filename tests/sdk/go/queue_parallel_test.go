// Parallel use of queues: many takers never hold the same message, and nothing is lost.

package sdk

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

func TestEachMessageIsTakenOnce(t *testing.T) {
	queue := newQueue(t)
	must(t, errors.Join(together(200, func(n int) error {
		_, err := queue.EnqueueMessage(ctx, fmt.Sprint(n), nil)
		return err
	})...))
	equal(t, messageCount(t, queue), int32(200))
	var lock sync.Mutex
	taken := map[string]int{}
	must(t, errors.Join(together(16, func(taker int) error {
		options := &azqueue.DequeueMessagesOptions{
			NumberOfMessages: pointer([]int32{1, 2, 5, 32}[taker%4]), VisibilityTimeout: pointer(int32(300)),
		}
		for {
			answer, err := queue.DequeueMessages(ctx, options)
			if err != nil || len(answer.Messages) == 0 {
				return err
			}
			for _, message := range answer.Messages {
				lock.Lock()
				taken[*message.MessageText]++
				lock.Unlock()
				if err := deleteMessage(queue, message.MessageID, message.PopReceipt); err != nil {
					return err
				}
			}
		}
	})...))
	equal(t, len(taken), 200)
	for text, times := range taken {
		if times != 1 {
			t.Fatalf("message %s was taken %d times", text, times)
		}
	}
	equal(t, messageCount(t, queue), int32(0))
}

func TestOfTheTakersOfASingleMessageOneGetsIt(t *testing.T) {
	queue := newQueue(t)
	for range 5 {
		send(t, queue, "one")
		var lock sync.Mutex
		taken := []*azqueue.DequeuedMessage{}
		must(t, errors.Join(together(20, func(int) error {
			answer, err := queue.DequeueMessage(ctx, nil)
			lock.Lock()
			defer lock.Unlock()
			taken = append(taken, answer.Messages...)
			return err
		})...))
		equal(t, len(taken), 1)
	}
}

func TestOfThoseWhoDeleteTheSameMessageOneSucceeds(t *testing.T) {
	queue := newQueue(t)
	sent := send(t, queue, "one")
	statuses := map[int]int{}
	for _, err := range together(20, func(int) error { return deleteMessage(queue, sent.MessageID, sent.PopReceipt) }) {
		statuses[statusOf(err)]++
	}
	equal(t, statuses, map[int]int{0: 1, 404: 19})
}
