package oldsdk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/storage"
)

type operation func(*storage.TableBatch, *storage.Entity)

var operations = map[string]operation{
	"insert":          (*storage.TableBatch).InsertEntity,
	"replace":         (*storage.TableBatch).ReplaceEntity,
	"merge":           (*storage.TableBatch).MergeEntity,
	"insertOrReplace": (*storage.TableBatch).InsertOrReplaceEntityByForce,
	"insertOrMerge":   (*storage.TableBatch).InsertOrMergeEntityByForce,
	"delete":          func(batch *storage.TableBatch, entity *storage.Entity) { batch.DeleteEntity(entity, false) },
}

// rolledBack expects failure at the index, and an unchanged table.
func rolledBack(t *testing.T, batch *storage.TableBatch, status int, code string, index int) {
	t.Helper()
	before := contents(t, batch.Table)
	refused(t, batch.ExecuteBatch(), status, code, fmt.Sprintf("Element %d in the batch", index))
	equal(t, contents(t, batch.Table), before)
}

func TestOneOperationAlone(t *testing.T) {
	both, new := properties{"old": "1", "new": "2"}, properties{"new": "2"}
	expected := map[string]properties{"insert": new, "replace": new, "merge": both, "insertOrReplace": new, "insertOrMerge": both}
	for name, add := range operations {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			if name != "insert" {
				insert(t, entity(table, "a", properties{"old": "1"}))
			}
			batch := table.NewBatch()
			add(batch, entity(table, "a", properties{"new": "2"}))
			must(t, batch.ExecuteBatch())
			if name == "delete" {
				equal(t, contents(t, table), map[string]properties{})
				return
			}
			equal(t, get(t, table, "p", "a").Properties, expected[name])
		})
	}
}

func TestAllKindsOfOperationInOneBatch(t *testing.T) {
	table := newTable(t)
	batch := table.NewBatch()
	for name, add := range operations {
		if name != "insert" {
			insert(t, entity(table, name, properties{"old": "1"}))
		}
		add(batch, entity(table, name, properties{"new": "2"}))
	}
	must(t, batch.ExecuteBatch())
	found := contents(t, table)
	for _, values := range found {
		delete(values, "etag")
	}
	equal(t, found, map[string]properties{
		"insert":          {"new": "2"},
		"replace":         {"new": "2"},
		"merge":           {"old": "1", "new": "2"},
		"insertOrReplace": {"new": "2"},
		"insertOrMerge":   {"old": "1", "new": "2"},
	})
}

func TestAHundredOperations(t *testing.T) {
	table := newTable(t)
	batch := table.NewBatch()
	for n := 0; n < 100; n++ {
		batch.InsertEntity(entity(table, fmt.Sprintf("%03d", n), properties{"n": n}))
	}
	must(t, batch.ExecuteBatch())
	equal(t, len(contents(t, table)), 100)
}

func TestAnOldETagFailsAtItsIndexAndTheCurrentOnePasses(t *testing.T) {
	for _, name := range []string{"replace", "merge", "delete"} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			insert(t, entity(table, "a", properties{"n": "1"}))
			current := insert(t, entity(table, "b", properties{"n": "1"})).OdataEtag
			batchWith := func(etag string) *storage.TableBatch {
				batch := table.NewBatch()
				batch.InsertOrReplaceEntityByForce(entity(table, "a", properties{"n": "2"}))
				changed := entity(table, "b", properties{"n": "2"})
				changed.OdataEtag = etag
				operations[name](batch, changed)
				return batch
			}
			rolledBack(t, batchWith(oldETag), 412, "UpdateConditionNotSatisfied", 1)
			must(t, batchWith(current).ExecuteBatch())
			found := contents(t, table)
			equal(t, found["a"]["n"], "2")
			if name != "delete" {
				equal(t, found["b"]["n"], "2")
			}
		})
	}
}

func TestAMissingEntityFailsAtItsIndex(t *testing.T) {
	for _, name := range []string{"replace", "merge", "delete"} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			insert(t, entity(table, "a", properties{"n": "1"}))
			batch := table.NewBatch()
			batch.MergeEntity(entity(table, "a", properties{"n": "2"}))
			operations[name](batch, entity(table, "missing", properties{}))
			rolledBack(t, batch, 404, "ResourceNotFound", 1)
		})
	}
}

func TestAnInsertOfAnExistingEntityFailsAtItsIndex(t *testing.T) {
	table := newTable(t)
	insert(t, entity(table, "taken", properties{}))
	batch := table.NewBatch()
	for _, row := range []string{"a", "b", "taken"} {
		batch.InsertEntity(entity(table, row, properties{}))
	}
	rolledBack(t, batch, 409, "EntityAlreadyExists", 2)
}

func TestTheSameRowTwiceIsRefused(t *testing.T) {
	table := newTable(t)
	batch := table.NewBatch()
	batch.InsertEntity(entity(table, "a", properties{}))
	batch.MergeEntity(entity(table, "a", properties{}))
	rolledBack(t, batch, 400, "InvalidDuplicateRow", 1)
}

func TestAValueThatIsTooLargeFailsAtItsIndex(t *testing.T) {
	table := newTable(t)
	batch := table.NewBatch()
	batch.InsertEntity(entity(table, "a", properties{}))
	batch.InsertEntity(entity(table, "b", properties{"text": strings.Repeat("x", 32769)}))
	rolledBack(t, batch, 400, "PropertyValueTooLarge", 1)
}

func TestABatchOnAMissingTableIsNotFound(t *testing.T) {
	table := service.GetTableReference(freshName())
	batch := table.NewBatch()
	batch.InsertEntity(entity(table, "a", properties{}))
	batch.InsertEntity(entity(table, "b", properties{}))
	refused(t, batch.ExecuteBatch(), 404, "TableNotFound", "0:The table specified does not exist.")
}

func TestValuesThatLookLikeAPartOfABatchStayValues(t *testing.T) {
	table := newTable(t)
	text := "--batch_x\r\n--changeset_x--\nHTTP/1.1 500\r\n\r\n{} Grüße"
	batch := table.NewBatch()
	batch.InsertEntity(entity(table, "a", properties{"text": text}))
	batch.InsertOrMergeEntityByForce(entity(table, "b", properties{"text": text}))
	must(t, batch.ExecuteBatch())
	for _, values := range contents(t, table) {
		equal(t, values["text"], text)
	}
}
