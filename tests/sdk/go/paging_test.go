// Paging: pages of the requested size, and tokens that another client can use later.

package sdk

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	partitionCount   = 3
	rowsPerPartition = 850 // 2,550 rows fill three pages of a thousand
)

// TestPaging fills one table and reads it in many ways.
func TestPaging(t *testing.T) {
	table, name := namedTable(t)
	everything := []string{}
	for p := range partitionCount {
		for start := 0; start < rowsPerPartition; start += 50 {
			actions := []aztables.TransactionAction{}
			for n := start; n < start+50; n++ {
				partition, row := fmt.Sprintf("p%d", p), fmt.Sprintf("%05d", n)
				everything = append(everything, partition+"/"+row)
				actions = append(actions, aztables.TransactionAction{
					ActionType: aztables.TransactionTypeAdd,
					Entity:     entityIn(partition, row, properties{"n": int32(n)}),
				})
			}
			_, err := table.SubmitTransaction(ctx, actions, nil)
			must(t, err)
		}
	}

	t.Run("a plain listing follows continuations to the end", func(t *testing.T) {
		pages := readPages(t, table, aztables.ListEntitiesOptions{})
		equal(t, join(pages), everything)
		equal(t, len(pages[0]), 1000)
	})

	for _, size := range []int{1000, 850, 400} {
		t.Run(fmt.Sprintf("pages of %d", size), func(t *testing.T) {
			pages := readPages(t, table, aztables.ListEntitiesOptions{Top: pointer(int32(size))})
			equal(t, join(pages), everything)
			equal(t, len(pages[0]), size)
			for _, page := range pages {
				equal(t, len(page) <= size, true)
			}
		})
	}

	t.Run("a saved token resumes where it stopped in another client", func(t *testing.T) {
		options := aztables.ListEntitiesOptions{Top: pointer(int32(700))}
		first, err := table.NewListEntitiesPager(&options).NextPage(ctx)
		must(t, err)
		equal(t, len(first.Entities), 700)

		other, err := aztables.NewServiceClientFromConnectionString(connectionString, clientOptions())
		must(t, err)
		options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
		equal(t, join(readPages(t, other.NewClient(name), options)), everything[700:])
	})

	t.Run("a token can be used twice", func(t *testing.T) {
		options := aztables.ListEntitiesOptions{Top: pointer(int32(10))}
		first, err := table.NewListEntitiesPager(&options).NextPage(ctx)
		must(t, err)
		options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
		for range 2 {
			again, err := table.NewListEntitiesPager(&options).NextPage(ctx)
			must(t, err)
			equal(t, keys(t, again.Entities), everything[10:20])
		}
	})

	t.Run("the last page has no token", func(t *testing.T) {
		pager := table.NewListEntitiesPager(nil)
		var last aztables.ListEntitiesResponse
		for pager.More() {
			page, err := pager.NextPage(ctx)
			must(t, err)
			last = page
		}
		equal(t, last.NextPartitionKey == nil && last.NextRowKey == nil, true)
		equal(t, len(last.Entities), len(everything)-2000)
	})

	t.Run("a filtered listing pages within its filter", func(t *testing.T) {
		filter := "PartitionKey eq 'p1' and n ge 100 and n lt 160"
		pages := readPages(t, table, aztables.ListEntitiesOptions{Filter: &filter, Top: pointer(int32(25))})
		equal(t, join(pages), everything[950:1010])
		for _, page := range pages {
			equal(t, len(page) <= 25, true)
		}
	})

	t.Run("more than 1000 per page is refused", func(t *testing.T) {
		_, err := tryList(table, &aztables.ListEntitiesOptions{Top: pointer(int32(1001))})
		refused(t, err, 400, string(aztables.InvalidInput))
	})

	t.Run("a page of nothing is empty and the last", func(t *testing.T) {
		pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: pointer(int32(0))})
		page, err := pager.NextPage(ctx)
		must(t, err)
		equal(t, len(page.Entities), 0)
		equal(t, pager.More(), false)
	})
}

func TestATokenStaysGoodWhenTheEntityItNamesIsGone(t *testing.T) {
	table := newTable(t)
	for _, row := range "012345" {
		add(t, table, entity(string(row), nil))
	}
	options := aztables.ListEntitiesOptions{Top: pointer(int32(2))}
	first, err := table.NewListEntitiesPager(&options).NextPage(ctx)
	must(t, err)
	for _, row := range []string{"1", "2"} {
		_, err := table.DeleteEntity(ctx, "p", row, nil)
		must(t, err)
	}
	options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
	equal(t, join(readPages(t, table, options)), []string{"p/3", "p/4", "p/5"})
}

func readPages(t *testing.T, table *aztables.Client, options aztables.ListEntitiesOptions) [][]string {
	t.Helper()
	pages := [][]string{}
	for pager := table.NewListEntitiesPager(&options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		pages = append(pages, keys(t, page.Entities))
	}
	return pages
}

func keys(t *testing.T, entities [][]byte) []string {
	t.Helper()
	found := []string{}
	for _, bytes := range entities {
		one := decode(t, bytes)
		found = append(found, one.PartitionKey+"/"+one.RowKey)
	}
	return found
}

func join(pages [][]string) []string {
	all := []string{}
	for _, page := range pages {
		all = append(all, page...)
	}
	return all
}
