package oldsdk

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/storage"
	uuid "github.com/satori/go.uuid"
)

func TestFilters(t *testing.T) {
	table := newTable(t)
	const guid = "c9da6455-213d-42c9-9a79-3e9149a5783"
	batch := table.NewBatch()
	for n := 0; n < 10; n++ {
		batch.InsertEntity(entity(table, fmt.Sprintf("r%d", n), properties{
			"n":     n,
			"text":  fmt.Sprintf("it's %d", n),
			"int64": int64(1)<<53 + int64(n),
			"float": float64(n) + 0.5,
			"even":  n%2 == 0,
			"time":  time.Date(2020, 1, 1+n, 0, 0, 0, 0, time.UTC),
			"guid":  uuid.FromStringOrNil(fmt.Sprintf("%s%d", guid, n)),
			"bytes": []byte{byte(n)},
		}))
	}
	must(t, batch.ExecuteBatch())
	for filter, expected := range map[string][]float64{
		"text eq 'it''s 3'":                      {3},
		"RowKey ge 'r4' and RowKey lt 'r6'":      {4, 5},
		"n gt 7":                                 {8, 9},
		"int64 ge 9007199254741000L":             {8, 9},
		"float lt 1.6":                           {0, 1},
		"even eq true":                           {0, 2, 4, 6, 8},
		"time eq datetime'2020-01-05T00:00:00Z'": {4},
		"guid eq guid'" + guid + "7'":            {7},
		"bytes eq X'05'":                         {5},
		"n eq 1 or n eq 8":                       {1, 8},
		"not (n lt 8)":                           {8, 9},
		"n eq 99":                                {},
	} {
		t.Run(filter, func(t *testing.T) {
			all, _ := list(t, table, &storage.QueryOptions{Filter: filter})
			found := []float64{}
			for _, one := range all {
				found = append(found, one.Properties["n"].(float64))
			}
			equal(t, found, expected)
		})
	}
	t.Run("select", func(t *testing.T) {
		found, _ := list(t, table, &storage.QueryOptions{Filter: "n eq 3", Select: []string{"n", "text"}})
		equal(t, found[0].Properties, properties{"n": 3.0, "text": "it's 3"})
	})
	t.Run("a filter that is none", func(t *testing.T) {
		_, err := table.QueryEntities(timeout, storage.FullMetadata, &storage.QueryOptions{Filter: "n eq eq 1"})
		refused(t, err, 400, "InvalidInput")
	})
}

func TestAQueryOfAMissingTableIsNotFound(t *testing.T) {
	_, err := service.GetTableReference(freshName()).QueryEntities(timeout, storage.FullMetadata, nil)
	refused(t, err, 404, "TableNotFound")
}
