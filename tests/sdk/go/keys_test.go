// Keys: every legal character survives URLs, bodies, transactions, filters and continuation tokens.

package sdk

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var awkward = []string{
	" ", "a b", " leading", "trailing ", "O'Brien", "''", "'", "100%", "%", "%27", "%2F", "%252F", "a+b", "a&b=c",
	"a,b", "a;b", `"quoted"`, "key:with:colons", "..", ".", "(a)", "[a]{b}|^`~", "<a>", "$batch", "@a*!", "ü", "u\u0308",
	"日本語", "😀", "a😀b\U0010ffff", "\ue000\uffee", strings.Repeat("x", 512),
}

// shortName shortens a key for use in a test name.
func shortName(key string) string {
	name := strconv.QuoteToASCII(key)
	return name[:min(len(name), 24)]
}

func TestEveryVerbFindsTheKey(t *testing.T) {
	for _, key := range awkward {
		t.Run(shortName(key), func(t *testing.T) {
			table := newTable(t)
			add(t, table, jsonEntity(key, key, properties{"n": 1}))
			equal(t, get(t, table, key, key).Properties, properties{"n": int32(1)})
			_, err := table.UpdateEntity(ctx, jsonEntity(key, key, properties{"m": 2}), nil)
			must(t, err)
			_, err = table.UpsertEntity(ctx, jsonEntity(key, key, properties{"n": 3}), nil)
			must(t, err)
			equal(t, get(t, table, key, key).Properties, properties{"n": int32(3), "m": int32(2)})

			quoted := "'" + strings.ReplaceAll(key, "'", "''") + "'"
			filter := "PartitionKey eq " + quoted + " and RowKey eq " + quoted
			found := list(t, table, &aztables.ListEntitiesOptions{Filter: &filter})
			equal(t, len(found), 1)
			equal(t, [2]string{found[0].PartitionKey, found[0].RowKey}, [2]string{key, key})

			_, err = table.DeleteEntity(ctx, key, key, nil)
			must(t, err)
			equal(t, len(list(t, table, nil)), 0)
		})
	}
}

func TestTransactionsFindTheKey(t *testing.T) {
	for _, key := range awkward {
		if strings.Contains(key, "'") {
			continue // The SDK does not double quotes in the URLs of a transaction.
		}
		t.Run(shortName(key), func(t *testing.T) {
			table := newTable(t)
			submit := func(kind aztables.TransactionType, n int32) {
				action := aztables.TransactionAction{ActionType: kind, Entity: jsonEntity(key, key, properties{"n": n})}
				_, err := table.SubmitTransaction(ctx, []aztables.TransactionAction{action}, nil)
				must(t, err)
			}
			submit(aztables.TransactionTypeAdd, 1)
			equal(t, get(t, table, key, key).Properties, properties{"n": int32(1)})
			submit(aztables.TransactionTypeUpdateReplace, 2)
			equal(t, get(t, table, key, key).Properties, properties{"n": int32(2)})
			submit(aztables.TransactionTypeDelete, 0)
			equal(t, len(list(t, table, nil)), 0)
		})
	}
}

func TestQuotesInABodyAreText(t *testing.T) {
	table := newTable(t)
	// The SDK's own entity type doubles quotes in the body, so this stores a different key.
	add(t, table, entityIn("O'Brien", "r", nil))
	equal(t, list(t, table, nil)[0].PartitionKey, "O''Brien")
	_, err := table.GetEntity(ctx, "O'Brien", "r", nil)
	notFound(t, err)
	get(t, table, "O''Brien", "r")
}

func TestKeysMayBeEmpty(t *testing.T) {
	table := newTable(t)
	add(t, table, entityIn("", "", properties{"n": int32(1)}))
	add(t, table, entityIn("p", "", properties{"n": int32(2)}))
	equal(t, len(list(t, table, nil)), 2)
	equal(t, get(t, table, "p", "").Properties, properties{"n": int32(2)})
	_, err := table.DeleteEntity(ctx, "p", "", nil)
	must(t, err)
	rest := list(t, table, &aztables.ListEntitiesOptions{Filter: pointer("PartitionKey eq '' and RowKey eq ''")})
	equal(t, len(rest), 1)
	equal(t, rest[0].Properties, properties{"n": int32(1)})
	// This SDK refuses to put an empty partition key into a URL.
	_, err = table.GetEntity(ctx, "", "", nil)
	equal(t, err.Error(), "parameter partitionKey cannot be empty")
}

func TestForbiddenCharactersAreRefused(t *testing.T) {
	for _, character := range []string{"/", `\`, "#", "?", "\t", "\n", "\x00", "\x7f", "\u0080", "\u009f"} {
		t.Run(shortName(character), func(t *testing.T) {
			table := newTable(t)
			text := "a" + character + "b"
			_, err := table.AddEntity(ctx, entityIn(text, "r", nil), nil)
			refused(t, err, 400, string(aztables.OutOfRangeInput), "The 'PartitionKey' parameter")
			_, err = table.AddEntity(ctx, entity(text, nil), nil)
			refused(t, err, 400, string(aztables.OutOfRangeInput), "The 'RowKey' parameter")
			equal(t, len(list(t, table, nil)), 0)
		})
	}
}

func TestAMissingKeyIsRefused(t *testing.T) {
	table := newTable(t)
	// The service refuses, and the SDK reports that in its own words.
	_, err := table.AddEntity(ctx, []byte(`{"RowKey":"r"}`), nil)
	equal(t, err.Error(), "entity must have a PartitionKey and RowKey")
	_, err = table.AddEntity(ctx, []byte(`{"PartitionKey":"p"}`), nil)
	equal(t, err.Error(), "entity must have a PartitionKey and RowKey")
	equal(t, len(list(t, table, nil)), 0)
}

func awkwardTable(t *testing.T) (*aztables.Client, []string) {
	t.Helper()
	table := newTable(t)
	for _, key := range awkward {
		add(t, table, jsonEntity(key, key, properties{"own": key}))
	}
	ordered := slices.SortedFunc(slices.Values(awkward), func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return table, ordered
}

func TestAwkwardKeysAreListedInUTF16Order(t *testing.T) {
	table, ordered := awkwardTable(t)
	found := []string{}
	for _, one := range list(t, table, nil) {
		equal(t, one.Properties, properties{"own": one.RowKey})
		found = append(found, one.RowKey)
	}
	equal(t, found, ordered)
}

func TestAwkwardKeysArePagedOneByOneWithoutLoss(t *testing.T) {
	table, ordered := awkwardTable(t)
	found := []string{}
	for _, one := range list(t, table, &aztables.ListEntitiesOptions{Top: pointer(int32(1))}) {
		found = append(found, one.RowKey)
	}
	equal(t, found, ordered)
}
