// Transactions: all or nothing, and the index of the operation that failed.

package sdk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	opAdd           = aztables.TransactionTypeAdd
	opUpdateMerge   = aztables.TransactionTypeUpdateMerge
	opUpdateReplace = aztables.TransactionTypeUpdateReplace
	opInsertMerge   = aztables.TransactionTypeInsertMerge
	opInsertReplace = aztables.TransactionTypeInsertReplace
	opDelete        = aztables.TransactionTypeDelete
)

var (
	anyETag = azcore.ETagAny
	oldETag = azcore.ETag(`W/"datetime'2001-01-01T00%3A00%3A00Z'"`)
)

type actions = []aztables.TransactionAction

// action is one operation. The SDK sends an update without an etag as an upsert, so updates name one.
func action(kind aztables.TransactionType, row string, values properties, etag ...azcore.ETag) aztables.TransactionAction {
	one := aztables.TransactionAction{ActionType: kind, Entity: entity(row, values)}
	if len(etag) > 0 {
		one.IfMatch = &etag[0]
	} else if kind == opUpdateMerge || kind == opUpdateReplace {
		one.IfMatch = &anyETag
	}
	return one
}

func submit(t *testing.T, table *aztables.Client, all actions) {
	t.Helper()
	_, err := table.SubmitTransaction(ctx, all, nil)
	must(t, err)
}

// rolledBack expects failure at an index (-1 where the service gives none) and an unchanged table.
func rolledBack(t *testing.T, table *aztables.Client, all actions, index, status int, code aztables.TableErrorCode) {
	t.Helper()
	before := contents(t, table)
	_, err := table.SubmitTransaction(ctx, all, nil)
	foundIndex, foundStatus, foundCode := failedPart(t, err)
	equal(t, []any{foundIndex, foundStatus, foundCode}, []any{index, status, string(code)})
	equal(t, contents(t, table), before)
}

func withoutETags(rows map[string]properties) map[string]properties {
	for _, row := range rows {
		delete(row, "etag")
	}
	return rows
}

func TestAllKindsOfOperationInOneTransaction(t *testing.T) {
	table := newTable(t)
	for _, row := range []string{"update-merge", "update-replace", "upsert-merge", "upsert-replace", "delete"} {
		add(t, table, entity(row, properties{"old": int32(1)}))
	}
	values := properties{"new": int32(2)}
	submit(t, table, actions{
		action(opAdd, "add", values),
		action(opUpdateMerge, "update-merge", values),
		action(opUpdateReplace, "update-replace", values),
		action(opInsertMerge, "upsert-merge", values),
		action(opInsertReplace, "upsert-replace", values),
		action(opInsertMerge, "upsert-merge-absent", values),
		action(opInsertReplace, "upsert-replace-absent", values),
		action(opDelete, "delete", nil),
	})
	both := properties{"old": int32(1), "new": int32(2)}
	equal(t, withoutETags(contents(t, table)), map[string]properties{
		"add": values, "update-merge": both, "update-replace": values, "upsert-merge": both, "upsert-replace": values,
		"upsert-merge-absent": values, "upsert-replace-absent": values,
	})
}

func TestAHundredInserts(t *testing.T) {
	table := newTable(t)
	all := actions{}
	for n := range 100 {
		all = append(all, action(opAdd, fmt.Sprintf("%03d", n), properties{"n": int32(n)}))
	}
	submit(t, table, all)
	found := list(t, table, nil)
	equal(t, len(found), 100)
	for n, one := range found {
		equal(t, one.Properties, properties{"n": int32(n)})
	}
}

func TestAnInsertOfAnExistingEntityFailsAtItsIndex(t *testing.T) {
	for _, index := range []int{0, 1, 50, 99} {
		t.Run(fmt.Sprint(index), func(t *testing.T) {
			table := newTable(t)
			add(t, table, entity("taken", properties{"n": int32(1)}))
			all := actions{}
			for n := range 100 {
				all = append(all, action(opAdd, fmt.Sprintf("%03d", n), nil))
			}
			all[index] = action(opAdd, "taken", properties{"n": int32(2)})
			rolledBack(t, table, all, index, 409, aztables.EntityAlreadyExists)
		})
	}
}

func TestAnUpdateOfAMissingEntityFailsAtItsIndex(t *testing.T) {
	for name, kind := range map[string]aztables.TransactionType{"merge": opUpdateMerge, "replace": opUpdateReplace} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			add(t, table, entity("there", properties{"n": int32(1)}))
			rolledBack(t, table, actions{
				action(kind, "there", properties{"n": int32(2)}),
				action(opInsertMerge, "new", properties{"n": int32(2)}),
				action(kind, "missing", properties{"n": int32(2)}),
			}, 2, 404, aztables.ResourceNotFound)
		})
	}
}

func TestADeleteOfAMissingEntityFailsAtItsIndex(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("there", properties{"n": int32(1)}))
	rolledBack(t, table, actions{
		action(opDelete, "there", nil), action(opDelete, "missing", nil), action(opAdd, "new", nil),
	}, 1, 404, aztables.ResourceNotFound)
}

func TestAnOldEtagFailsAtItsIndex(t *testing.T) {
	for name, kind := range map[string]aztables.TransactionType{
		"merge": opUpdateMerge, "replace": opUpdateReplace, "delete": opDelete,
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			add(t, table, entity("a", properties{"n": int32(1)}))
			add(t, table, entity("b", properties{"n": int32(1)}))
			rolledBack(t, table, actions{
				action(opInsertReplace, "a", properties{"n": int32(2)}),
				action(kind, "b", properties{"n": int32(2)}, oldETag),
			}, 1, 412, aztables.UpdateConditionNotSatisfied)
		})
	}
}

func TestRightEtagsLetATransactionPass(t *testing.T) {
	table := newTable(t)
	a := add(t, table, entity("a", properties{"n": int32(1)}))
	b := add(t, table, entity("b", properties{"n": int32(1)}))
	submit(t, table, actions{
		action(opUpdateReplace, "a", properties{"n": int32(2)}, a), action(opDelete, "b", nil, b),
	})
	equal(t, withoutETags(contents(t, table)), map[string]properties{"a": {"n": int32(2)}})
}

func TestTheSameRowTwiceIsRefused(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("there", properties{"n": int32(1)}))
	rolledBack(t, table, actions{
		action(opAdd, "a", nil),
		action(opInsertMerge, "there", properties{"n": int32(2)}),
		action(opUpdateMerge, "there", properties{"n": int32(3)}),
	}, 2, 400, aztables.InvalidDuplicateRow)
}

func TestMixedPartitionsAreRefused(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("there", properties{"n": int32(1)}))
	rolledBack(t, table, actions{
		action(opAdd, "a", nil),
		action(opInsertMerge, "there", properties{"n": int32(2)}),
		{ActionType: opAdd, Entity: entityIn("q", "b", nil)},
	}, 2, 400, "CommandsInBatchActOnDifferentPartitions")
}

func TestMoreThanAHundredOperationsAreRefused(t *testing.T) {
	table := newTable(t)
	all := actions{}
	for n := range 101 {
		all = append(all, action(opAdd, fmt.Sprintf("%03d", n), nil))
	}
	rolledBack(t, table, all, 99, 400, aztables.InvalidInput)
}

func TestAValueThatIsTooLargeFailsAtItsIndex(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("there", properties{"n": int32(1)}))
	rolledBack(t, table, actions{
		action(opInsertMerge, "there", properties{"n": int32(2)}),
		action(opAdd, "big", properties{"text": strings.Repeat("x", 32769)}),
	}, 1, 400, aztables.PropertyValueTooLarge)
}

func TestABadKeyFailsAtItsIndex(t *testing.T) {
	rolledBack(t, newTable(t), actions{
		action(opAdd, "a", nil), action(opAdd, "b/c", nil),
	}, 1, 400, aztables.OutOfRangeInput)
}

func TestAFailingSingleOperationIsReportedWithoutANumber(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("taken", properties{"n": int32(1)}))
	rolledBack(t, table, actions{action(opAdd, "taken", nil)}, -1, 409, aztables.EntityAlreadyExists)
}

func TestATransactionOnAMissingTableIsNotFound(t *testing.T) {
	missing := service.NewClient(freshName())
	_, err := missing.SubmitTransaction(ctx, actions{action(opAdd, "a", nil), action(opAdd, "b", nil)}, nil)
	index, status, code := failedPart(t, err)
	equal(t, []any{index, status, code}, []any{0, 404, "TableNotFound"})
}

func TestAnEmptyTransactionIsNotSent(t *testing.T) {
	_, err := newTable(t).SubmitTransaction(ctx, actions{}, nil)
	equal(t, err.Error(), "transaction cannot be empty")
}

func TestABodyAbove4MiBIsTooLarge(t *testing.T) {
	table := newTable(t)
	text, all := strings.Repeat("x", 32768), actions{}
	for n := range 70 {
		all = append(all, action(opAdd, fmt.Sprintf("%03d", n), properties{"a": text, "b": text}))
	}
	_, err := table.SubmitTransaction(ctx, all, nil)
	refused(t, err, 413, "RequestBodyTooLarge")
	equal(t, len(list(t, table, nil)), 0)
}

func TestValuesWithBracesAndBoundariesDoNotConfuseAnybody(t *testing.T) {
	table := newTable(t)
	text := "{}--changeset_x\r\n--batch_x--\r\nHTTP/1.1 500 {\"odata.error\":{}}"
	submit(t, table, actions{
		action(opAdd, "a", properties{"text": text}), action(opInsertMerge, "b{}", properties{"text": text}),
	})
	equal(t, withoutETags(contents(t, table)), map[string]properties{"a": {"text": text}, "b{}": {"text": text}})
}

func TestAfterAFailureTheSameRowsCanBeWritten(t *testing.T) {
	table := newTable(t)
	rolledBack(t, table, actions{action(opAdd, "a", nil), action(opDelete, "missing", nil)}, 1, 404, aztables.ResourceNotFound)
	submit(t, table, actions{action(opAdd, "a", properties{"n": int32(1)})})
	equal(t, withoutETags(contents(t, table)), map[string]properties{"a": {"n": int32(1)}})
}
