// Messages: send, receive, peek, update, delete, clear.

package sdk

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

var (
	guid  = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

const (
	rangeError = "OutOfRangeQueryParameterValue"
	valueError = "InvalidQueryParameterValue"
	noMessage  = "MessageNotFound"
)

func updateMessage(queue *azqueue.QueueClient, id, receipt *string, text string, seconds int32) (azqueue.UpdateMessageResponse, error) {
	return queue.UpdateMessage(ctx, *id, *receipt, text, &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
}

func deleteMessage(queue *azqueue.QueueClient, id, receipt *string) error {
	_, err := queue.DeleteMessage(ctx, *id, *receipt, nil)
	return err
}

func trySend(queue *azqueue.QueueClient, text string, visibility, timeToLive *int32) error {
	_, err := queue.EnqueueMessage(ctx, text, &azqueue.EnqueueMessageOptions{VisibilityTimeout: visibility, TimeToLive: timeToLive})
	return err
}

func TestMessagesAreDescribed(t *testing.T) {
	queue := newQueue(t)
	sent := send(t, queue, "text")
	equal(t, guid.MatchString(*sent.MessageID), true)
	around(t, sent.InsertionTime, 0)
	equal(t, *sent.TimeNextVisible, *sent.InsertionTime)
	equal(t, sent.ExpirationTime.Sub(*sent.InsertionTime), week*time.Second)

	peeked := peek(t, queue, 1)[0]
	equal(t, []any{*peeked.MessageID, *peeked.MessageText, *peeked.DequeueCount}, []any{*sent.MessageID, "text", int64(0)})
	equal(t, []time.Time{*peeked.InsertionTime, *peeked.ExpirationTime}, []time.Time{*sent.InsertionTime, *sent.ExpirationTime})

	taken := receiveOne(t, queue)
	equal(t, []any{*taken.MessageID, *taken.MessageText, *taken.DequeueCount}, []any{*sent.MessageID, "text", int64(1)})
	equal(t, []time.Time{*taken.InsertionTime, *taken.ExpirationTime}, []time.Time{*sent.InsertionTime, *sent.ExpirationTime})
	equal(t, *taken.PopReceipt != *sent.PopReceipt, true)
	around(t, taken.TimeNextVisible, 30)
}

func TestTextComesBackAsSent(t *testing.T) {
	for name, sent := range map[string]string{
		"empty":       "",
		"unicode":     "grüße 漢字 😀 \u00a0 e\u0301",
		"XML":         "<a href=\"x\">&amp; & ]]> 'q' <![CDATA[y]]></a>",
		"white space": "  leading, trailing, \t tab,\nline \r\n and return  ",
		"only spaces": "   ",
		"Base64":      base64.StdEncoding.EncodeToString([]byte("hello>>?")),
	} {
		t.Run(name, func(t *testing.T) {
			queue := newQueue(t)
			send(t, queue, sent)
			equal(t, peekTexts(t, queue), []string{sent})
			equal(t, text(receiveOne(t, queue).MessageText), sent)
		})
	}
}

func TestATextHas64KiBAtMost(t *testing.T) {
	queue := newQueue(t)
	for _, letter := range []string{"x", "漢", "&"} {
		most := strings.Repeat(letter, textBytesMax/len(letter))
		most += strings.Repeat("x", textBytesMax-len(most))
		sent := send(t, queue, most)
		equal(t, peekTexts(t, queue), []string{most})
		refused(t, trySend(queue, most+"x", nil, nil), 413, "RequestBodyTooLarge")
		_, err := updateMessage(queue, sent.MessageID, sent.PopReceipt, most+"x", 0)
		refused(t, err, 413, "RequestBodyTooLarge")
		must(t, deleteMessage(queue, sent.MessageID, sent.PopReceipt))
	}
	refused(t, trySend(queue, strings.Repeat("x", 1<<20), nil, nil), 413, "RequestBodyTooLarge")
	equal(t, messageCount(t, queue), int32(0))
}

func TestTimeToLive(t *testing.T) {
	queue := newQueue(t)
	expiry := func(seconds int32) *time.Time {
		return sendWith(t, queue, "text", &azqueue.EnqueueMessageOptions{TimeToLive: &seconds}).ExpirationTime
	}
	around(t, expiry(100), 100)
	around(t, expiry(10*week), 10*week)
	around(t, expiry(math.MaxInt32), math.MaxInt32)
	equal(t, expiry(-1).UTC(), never)
	for _, seconds := range []int32{0, -2} {
		refused(t, trySend(queue, "text", nil, &seconds), 400, valueError)
	}
}

func TestAMessageIsGoneWhenItHasExpired(t *testing.T) {
	queue := newQueue(t)
	sent := sendWith(t, queue, "short", &azqueue.EnqueueMessageOptions{TimeToLive: pointer(int32(1))})
	send(t, queue, "long")
	time.Sleep(1200 * time.Millisecond)
	equal(t, peekTexts(t, queue), []string{"long"})
	equal(t, receivedTexts(receive(t, queue, 32, 30)), []string{"long"})
	equal(t, messageCount(t, queue), int32(1))
	refused(t, deleteMessage(queue, sent.MessageID, sent.PopReceipt), 404, noMessage)
}

func TestVisibilityEndsBeforeTheMessageAndWithinAWeek(t *testing.T) {
	queue := newQueue(t)
	forEver := pointer(int32(-1))
	refused(t, trySend(queue, "text", pointer(int32(10)), pointer(int32(10))), 400, valueError,
		"messagettl must be greater than visibilitytimeout")
	must(t, trySend(queue, "text", pointer(int32(9)), pointer(int32(10))))
	must(t, trySend(queue, "text", pointer(int32(week)), forEver))
	sent := send(t, queue, "text")
	for _, seconds := range []int32{-1, week + 1} {
		refused(t, trySend(queue, "text", &seconds, forEver), 400, rangeError)
		_, err := updateMessage(queue, sent.MessageID, sent.PopReceipt, "x", seconds)
		refused(t, err, 400, rangeError)
	}
	for _, seconds := range []int32{-1, 0, week + 1} {
		_, err := queue.DequeueMessage(ctx, &azqueue.DequeueMessageOptions{VisibilityTimeout: &seconds})
		refused(t, err, 400, rangeError)
	}
}

func TestAMessageSentInvisibleAppearsOnTime(t *testing.T) {
	queue := newQueue(t)
	sent := sendWith(t, queue, "later", &azqueue.EnqueueMessageOptions{VisibilityTimeout: pointer(int32(1))})
	equal(t, peekTexts(t, queue), []string{})
	equal(t, len(receive(t, queue, 32, 30)), 0)
	equal(t, *receiveOne(t, queue).MessageID, *sent.MessageID)
}

func TestAMessageComesBackAndIsLostToTheFirstTaker(t *testing.T) {
	queue := newQueue(t)
	send(t, queue, "again")
	first := receive(t, queue, 1, 1)[0]
	equal(t, len(receive(t, queue, 1, 30)), 0)
	second := receiveOne(t, queue)
	equal(t, []int64{*first.DequeueCount, *second.DequeueCount}, []int64{1, 2})
	refused(t, deleteMessage(queue, first.MessageID, first.PopReceipt), 404, noMessage)
	_, err := updateMessage(queue, first.MessageID, first.PopReceipt, "x", 60)
	refused(t, err, 404, noMessage)
	must(t, deleteMessage(queue, second.MessageID, second.PopReceipt))
}

func TestFirstInFirstOutUpTo32AtATime(t *testing.T) {
	queue := newQueue(t)
	sent := []string{}
	for n := range 40 {
		sent = append(sent, fmt.Sprint(n))
		send(t, queue, sent[n])
	}
	equal(t, peekTexts(t, queue), sent[:32])
	equal(t, text(receiveOne(t, queue).MessageText), "0")
	equal(t, receivedTexts(receive(t, queue, 32, 30)), sent[1:33])
	equal(t, receivedTexts(receive(t, queue, 32, 30)), sent[33:])
	equal(t, len(receive(t, queue, 32, 30)), 0)
	for _, count := range []int32{0, 33} {
		_, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &count})
		refused(t, err, 400, rangeError)
		_, err = queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &count})
		refused(t, err, 400, rangeError)
	}
}

func TestAnUpdateChangesTextAndVisibility(t *testing.T) {
	queue := newQueue(t)
	send(t, queue, "old")
	taken := receiveOne(t, queue)
	updated, err := updateMessage(queue, taken.MessageID, taken.PopReceipt, "new <&>", 0)
	must(t, err)
	around(t, updated.TimeNextVisible, 0)
	equal(t, *updated.PopReceipt != *taken.PopReceipt, true)
	again := receiveOne(t, queue)
	equal(t, []any{*again.MessageID, *again.MessageText, *again.DequeueCount}, []any{*taken.MessageID, "new <&>", int64(2)})
	equal(t, []time.Time{*again.InsertionTime, *again.ExpirationTime}, []time.Time{*taken.InsertionTime, *taken.ExpirationTime})
	// The SDK sends an empty text as such, so the message becomes empty.
	_, err = updateMessage(queue, again.MessageID, again.PopReceipt, "", 0)
	must(t, err)
	equal(t, peekTexts(t, queue), []string{""})
}

func TestAnUpdateExtendsTheTime(t *testing.T) {
	queue := newQueue(t)
	send(t, queue, "text")
	taken := receive(t, queue, 1, 1)[0]
	updated, err := updateMessage(queue, taken.MessageID, taken.PopReceipt, "text", 100)
	must(t, err)
	around(t, updated.TimeNextVisible, 100)
	time.Sleep(1200 * time.Millisecond)
	equal(t, len(receive(t, queue, 1, 30)), 0)
	must(t, deleteMessage(queue, taken.MessageID, updated.PopReceipt))
}

func TestOnlyTheNewestReceiptWorks(t *testing.T) {
	queue := newQueue(t)
	sent := send(t, queue, "text")
	taken := receiveOne(t, queue)
	updated, err := updateMessage(queue, taken.MessageID, taken.PopReceipt, "text", 30)
	must(t, err)
	for _, stale := range []*string{sent.PopReceipt, taken.PopReceipt} {
		refused(t, deleteMessage(queue, taken.MessageID, stale), 404, noMessage)
		_, err = updateMessage(queue, taken.MessageID, stale, "x", 0)
		refused(t, err, 404, noMessage)
	}
	must(t, deleteMessage(queue, taken.MessageID, updated.PopReceipt))
	refused(t, deleteMessage(queue, taken.MessageID, updated.PopReceipt), 404, noMessage)
}

func TestAMessageIsDeletedAfterItsTimeWhenNobodyTookIt(t *testing.T) {
	queue := newQueue(t)
	send(t, queue, "slow")
	taken := receive(t, queue, 1, 1)[0]
	time.Sleep(1200 * time.Millisecond)
	must(t, deleteMessage(queue, taken.MessageID, taken.PopReceipt))
	equal(t, messageCount(t, queue), int32(0))
}

func TestMalformedReceiptsAndUnknownMessages(t *testing.T) {
	queue := newQueue(t)
	sent := send(t, queue, "text")
	malformed := pointer("no receipt!")
	refused(t, deleteMessage(queue, sent.MessageID, malformed), 400, valueError, "Invalid pop receipt format")
	_, err := updateMessage(queue, sent.MessageID, malformed, "x", 0)
	refused(t, err, 400, valueError, "Invalid pop receipt format")
	for _, id := range []string{"00000000-0000-0000-0000-000000000000", "no-guid"} {
		refused(t, deleteMessage(queue, &id, sent.PopReceipt), 404, noMessage)
	}
	equal(t, peekTexts(t, queue), []string{"text"})
}

func TestClearingRemovesVisibleAndInvisibleMessages(t *testing.T) {
	queue := newQueue(t)
	send(t, queue, "text")
	send(t, queue, "text")
	taken := receiveOne(t, queue)
	_, err := queue.ClearMessages(ctx, nil)
	must(t, err)
	equal(t, messageCount(t, queue), int32(0))
	refused(t, deleteMessage(queue, taken.MessageID, taken.PopReceipt), 404, noMessage)
	send(t, queue, "new")
	equal(t, receivedTexts(receive(t, queue, 32, 30)), []string{"new"})
}
