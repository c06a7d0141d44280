package oldsdk

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/storage"
)

func TestPages(t *testing.T) {
	table := newTable(t)
	for _, partition := range []string{"a", "b"} {
		for start := 0; start < 700; start += 100 {
			batch := table.NewBatch()
			for n := start; n < start+100; n++ {
				batch.InsertEntity(entityIn(table, partition, fmt.Sprintf("%04d", n), properties{"n": n}))
			}
			must(t, batch.ExecuteBatch())
		}
	}
	for name, one := range map[string]struct {
		options *storage.QueryOptions
		total   int
		sizes   []int
	}{
		"a page has at most a thousand entities": {nil, 1400, []int{1000, 400}},
		"top is the size of every page":          {&storage.QueryOptions{Top: 500}, 1400, []int{500, 500, 400}},
		"a filter holds on every page":           {&storage.QueryOptions{Filter: "n ge 100"}, 1200, nil},
		"select holds on every page":             {&storage.QueryOptions{Select: []string{"PartitionKey", "RowKey"}}, 1400, []int{1000, 400}},
	} {
		t.Run(name, func(t *testing.T) {
			all, sizes := list(t, table, one.options)
			equal(t, len(all), one.total)
			if one.sizes != nil {
				equal(t, sizes, one.sizes)
			}
			last := ""
			for _, found := range all {
				key := found.PartitionKey + found.RowKey
				if key <= last {
					t.Fatalf("%s after %s", key, last)
				}
				last = key
			}
		})
	}
}
