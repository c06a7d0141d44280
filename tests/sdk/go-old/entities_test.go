package oldsdk

import (
	"math"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/storage"
	uuid "github.com/satori/go.uuid"
)

func TestInsertAtEveryMetadataLevel(t *testing.T) {
	table := newTable(t)
	for name, level := range map[string]storage.MetadataLevel{
		"empty": storage.EmptyPayload, "none": storage.NoMetadata, "minimal": storage.MinimalMetadata, "full": storage.FullMetadata,
	} {
		t.Run(name, func(t *testing.T) {
			made := entity(table, name, properties{"n": 1})
			must(t, made.Insert(level, nil))
			found := get(t, table, "p", name)
			equal(t, found.Properties["n"], 1.0) // The client reads any number of JSON as float64.
			if level == storage.FullMetadata || level == storage.MinimalMetadata {
				equal(t, made.OdataEtag, found.OdataEtag)
			}
			if level != storage.EmptyPayload {
				equal(t, made.TimeStamp, found.TimeStamp)
			}
		})
	}
}

func TestASecondInsertConflicts(t *testing.T) {
	table := newTable(t)
	insert(t, entity(table, "a", properties{"n": 1}))
	refused(t, entity(table, "a", properties{"n": 2}).Insert(storage.EmptyPayload, nil), 409, "EntityAlreadyExists")
	equal(t, get(t, table, "p", "a").Properties["n"], 1.0)
}

func TestValuesOfEveryTypeComeBack(t *testing.T) {
	table := newTable(t)
	values := properties{
		"text":  "Grüße, 世界 🙂 'quoted' \"double\" \\ / < >",
		"empty": "",
		"int64": int64(math.MaxInt64),
		"float": 0.1,
		"whole": 3.0,
		"yes":   true,
		"no":    false,
		"time":  time.Date(2020, 2, 29, 12, 34, 56, 789000000, time.UTC),
		"guid":  uuid.FromStringOrNil("c9da6455-213d-42c9-9a79-3e9149a57833"),
		"bytes": []byte{0, 1, 254, 255},
	}
	insert(t, entity(table, "a", values))
	for name, level := range map[string]storage.MetadataLevel{"minimal": storage.MinimalMetadata, "full": storage.FullMetadata} {
		t.Run(name, func(t *testing.T) {
			found := table.GetEntityReference("p", "a")
			must(t, found.Get(timeout, level, nil))
			equal(t, found.Properties, values)
		})
	}
}

func TestInfiniteDoublesAndNotANumberComeBack(t *testing.T) {
	table := newTable(t)
	// The client writes Go's own names for the infinities, so only this value is the service's too.
	insert(t, entity(table, "a", properties{"none": math.NaN()}))
	equal(t, math.IsNaN(get(t, table, "p", "a").Properties["none"].(float64)), true)
}

func TestUpdateDropsPropertiesAndMergeKeepsThem(t *testing.T) {
	table := newTable(t)
	for _, row := range []string{"update", "merge"} {
		insert(t, entity(table, row, properties{"old": "1", "both": "1"}))
	}
	must(t, entity(table, "update", properties{"both": "2"}).Update(true, nil))
	must(t, entity(table, "merge", properties{"both": "2"}).Merge(true, nil))
	equal(t, get(t, table, "p", "update").Properties, properties{"both": "2"})
	equal(t, get(t, table, "p", "merge").Properties, properties{"both": "2", "old": "1"})
}

func TestInsertOrReplaceAndInsertOrMerge(t *testing.T) {
	upserts := map[string]func(*storage.Entity, *storage.EntityOptions) error{
		"replace": (*storage.Entity).InsertOrReplace, "merge": (*storage.Entity).InsertOrMerge,
	}
	expected := map[string]properties{"replace": {"new": "2"}, "merge": {"old": "1", "new": "2"}}
	for name, upsert := range upserts {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			first := entity(table, "a", properties{"old": "1"})
			must(t, upsert(first, nil))
			equal(t, first.OdataEtag, get(t, table, "p", "a").OdataEtag)
			second := entity(table, "a", properties{"new": "2"})
			must(t, upsert(second, nil))
			found := get(t, table, "p", "a")
			equal(t, found.OdataEtag, second.OdataEtag)
			equal(t, found.Properties, expected[name])
		})
	}
}

var conditional = map[string]func(*storage.Entity, bool, *storage.EntityOptions) error{
	"update": (*storage.Entity).Update, "merge": (*storage.Entity).Merge, "delete": (*storage.Entity).Delete,
}

func TestTheCurrentETagPassesAndAnOlderOneFails(t *testing.T) {
	for name, change := range conditional {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			old := insert(t, entity(table, "a", properties{"n": "1"}))
			first := old.OdataEtag
			old.Properties = properties{"n": "2"}
			must(t, old.Merge(false, nil)) // This keeps the new ETag.
			changed := entity(table, "a", properties{"n": "3"})
			for _, etag := range []string{first, oldETag} {
				changed.OdataEtag = etag
				notSatisfied(t, change(changed, false, nil))
			}
			now := get(t, table, "p", "a")
			equal(t, now.Properties["n"], "2")
			equal(t, now.OdataEtag, old.OdataEtag)
			changed.OdataEtag = old.OdataEtag
			must(t, change(changed, false, nil))
			if name != "delete" {
				equal(t, get(t, table, "p", "a").Properties["n"], "3")
			}
		})
	}
}

func TestAMissingEntityIsNotFound(t *testing.T) {
	for name, change := range conditional {
		t.Run(name, func(t *testing.T) {
			err := change(entity(newTable(t), "missing", properties{}), true, nil)
			refused(t, err, 404, "ResourceNotFound", "The specified resource does not exist.")
		})
	}
	t.Run("get", func(t *testing.T) {
		err := newTable(t).GetEntityReference("p", "missing").Get(timeout, storage.FullMetadata, nil)
		refused(t, err, 404, "ResourceNotFound")
	})
}

func TestSelectChoosesProperties(t *testing.T) {
	table := newTable(t)
	insert(t, entity(table, "a", properties{"n": "1", "m": "2"}))
	found := table.GetEntityReference("p", "a")
	must(t, found.Get(timeout, storage.MinimalMetadata, &storage.GetEntityOptions{Select: []string{"n"}}))
	equal(t, found.Properties, properties{"n": "1"})
}

func TestEverythingOnAMissingTableIsNotFound(t *testing.T) {
	missing := entity(service.GetTableReference(freshName()), "a", properties{})
	refused(t, missing.Insert(storage.EmptyPayload, nil), 404, "TableNotFound", "The table specified does not exist.")
	refused(t, missing.InsertOrReplace(nil), 404, "TableNotFound")
	refused(t, missing.InsertOrMerge(nil), 404, "TableNotFound")
	refused(t, missing.Get(timeout, storage.FullMetadata, nil), 404, "TableNotFound")
}
