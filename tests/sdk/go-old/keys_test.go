package oldsdk

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/storage"
)

// keys is without quotes: the client puts keys into the path as they are, so a caller must double quotes there.
var keys = []string{
	"100%", "%25", "%2F", "a b", "a+b", "a&b=c", "a,b", "(a)", "a;b", "a:b", "a@b", "a$b", "a=b", "a!b", "a*b", "~a", "\"a\"",
	"<a>", "{a}", "[a]", "a|b", "a^b", "`a`", "Grüße", "世界", "🙂", "é", "e\u0301", "a\u00a0b", " a ", ".", "..", "",
}

func TestKeysThatNeedEscaping(t *testing.T) {
	table := newTable(t)
	for _, key := range keys {
		t.Run(fmt.Sprintf("%q", key), func(t *testing.T) {
			insert(t, entityIn(table, key, key, properties{"n": "1"}))
			equal(t, get(t, table, key, key).Properties, properties{"n": "1"})
			must(t, entityIn(table, key, key, properties{"m": "2"}).Merge(true, nil))
			must(t, entityIn(table, key, key, properties{"n": "2"}).Update(true, nil))
			filter := fmt.Sprintf("PartitionKey eq '%s' and RowKey eq '%s'", key, key)
			found, _ := list(t, table, &storage.QueryOptions{Filter: filter})
			equal(t, len(found), 1)
			equal(t, found[0].PartitionKey+"/"+found[0].RowKey, key+"/"+key)
			equal(t, found[0].Properties, properties{"n": "2"})
			batch := table.NewBatch()
			batch.MergeEntity(entityIn(table, key, key, properties{"m": "3"}))
			must(t, batch.ExecuteBatch())
			equal(t, get(t, table, key, key).Properties, properties{"n": "2", "m": "3"})
			must(t, entityIn(table, key, key, nil).Delete(true, nil))
			equal(t, contents(t, table), map[string]properties{})
		})
	}
}

func TestAQuoteInAKeyIsDoubledByTheCaller(t *testing.T) {
	table := newTable(t)
	for _, key := range []string{"it's", "'", "''"} {
		t.Run(key, func(t *testing.T) {
			insert(t, entityIn(table, key, key, properties{"n": "1"}))
			doubled := strings.ReplaceAll(key, "'", "''")
			equal(t, get(t, table, doubled, doubled).Properties, properties{"n": "1"})
			// The keys in the body are doubled too, but those in the address count.
			must(t, entityIn(table, doubled, doubled, properties{"m": "2"}).Merge(true, nil))
			found, _ := list(t, table, nil)
			equal(t, len(found), 1)
			equal(t, found[0].RowKey, key)
			equal(t, found[0].Properties, properties{"n": "1", "m": "2"})
			must(t, entityIn(table, doubled, doubled, nil).Delete(true, nil))
		})
	}
}

func TestPagesGoOnAfterKeysThatNeedEscaping(t *testing.T) {
	table := newTable(t)
	all := append([]string{"it's", "'"}, keys...)
	for _, key := range all {
		insert(t, entityIn(table, key, key, nil))
	}
	found, _ := list(t, table, &storage.QueryOptions{Top: 1})
	rows := []string{}
	for _, one := range found {
		rows = append(rows, one.RowKey)
	}
	sort.Strings(all)
	sort.Strings(rows)
	equal(t, rows, all)
}

func TestForbiddenCharactersAreRefused(t *testing.T) {
	table := newTable(t)
	for _, key := range []string{"a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u007fb", "a\u0085b"} {
		t.Run(fmt.Sprintf("%q", key), func(t *testing.T) {
			refused(t, entityIn(table, "p", key, nil).Insert(storage.EmptyPayload, nil), 400, "OutOfRangeInput")
			refused(t, entityIn(table, key, "r", nil).Insert(storage.EmptyPayload, nil), 400, "OutOfRangeInput")
		})
	}
}
