// Queries: filters over every type, select, and refusals. The SDK has no filter builder: filters are text.

package sdk

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func queryTable(t *testing.T) *aztables.Client {
	t.Helper()
	table := newTable(t)
	for row, values := range map[string]properties{
		"a": {
			"i": int32(1), "d": 1.5, "s": "apple", "b": true,
			"t": aztables.EDMDateTime(time.Date(2020, 6, 1, 12, 0, 0, 0, time.UTC)),
		},
		"b": {
			"i": int32(2), "d": 2.5, "s": "O'Brien", "b": false,
			"g": aztables.EDMGUID("a455c695-df98-5678-aaaa-81d3367e5a34"),
		},
		"c": {"i": int32(3), "s": "Banana", "x": aztables.EDMBinary{1, 2, 255}},
		"d": {"i": int32(-4), "s": "", "l": aztables.EDMInt64(1 << 40)},
		"e": {"s": "zürich 😀", "l": aztables.EDMInt64(3), "v": "text"},
	} {
		add(t, table, entity(row, values))
	}
	return table
}

func TestFilters(t *testing.T) {
	table := queryTable(t)
	for filter, expected := range map[string]string{
		"i eq 2":                          "b",
		"i ne 2":                          "acd",
		"i gt 2":                          "c",
		"i ge 2":                          "bc",
		"i lt 2":                          "ad",
		"i le 2":                          "abd",
		"not (i eq 2)":                    "acde",
		"nothing ne 1":                    "",
		"not (nothing eq 1)":              "abcde",
		"d gt 1.5":                        "b",
		"d le 2.5":                        "ab",
		"l eq 1099511627776L":             "d",
		"l eq 3":                          "e",
		"l gt 3L":                         "d",
		"i eq 3L":                         "",
		"i lt 3L":                         "abcd",
		"v ne 5":                          "e",
		"v lt 5":                          "e",
		"s eq 'O''Brien'":                 "b",
		"s lt 'a'":                        "bcd",
		"s eq ''":                         "d",
		"s eq 'zürich 😀'":                 "e",
		"b":                               "a",
		"not b":                           "bcde",
		"true":                            "abcde",
		"false":                           "",
		"x eq X'0102ff'":                  "c",
		"x eq binary'0102FF'":             "c",
		"'c' lt RowKey":                   "de",
		"RowKey eq 'e' or RowKey eq 'a'":  "ae",
		"i eq 1 or i eq 2 and d eq 9.0":   "a",
		"(i eq 1 or i eq 2) and d eq 2.5": "b",
		"t gt datetime'2020-06-01T11:59:59.9999999Z'":             "a",
		"g eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'":         "b",
		"PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'd'": "bc",
	} {
		t.Run(filter, func(t *testing.T) {
			rows := ""
			for _, found := range list(t, table, &aztables.ListEntitiesOptions{Filter: &filter}) {
				rows += found.RowKey
			}
			equal(t, rows, expected)
		})
	}
}

func TestFiltersThatAreRefused(t *testing.T) {
	table := queryTable(t)
	for filter, expected := range map[string]struct {
		status int
		code   aztables.TableErrorCode
	}{
		"aaa bbb ccc":        {400, aztables.InvalidInput},
		"i eq":               {400, aztables.InvalidInput},
		"i eq 'open":         {400, aztables.InvalidInput},
		"(i eq 1":            {400, aztables.InvalidInput},
		"i EQ 1":             {400, aztables.InvalidInput},
		"i eq 5454161346626": {400, aztables.InvalidInput},
		"1":                  {400, aztables.InvalidInput},
		"i eq d":             {501, aztables.NotImplemented},
		"1 eq 1":             {501, aztables.NotImplemented},
		"startswith(s,'a')":  {501, aztables.NotImplemented},
	} {
		t.Run(filter, func(t *testing.T) {
			_, err := tryList(table, &aztables.ListEntitiesOptions{Filter: &filter})
			refused(t, err, expected.status, string(expected.code))
		})
	}
}

func TestSelectReturnsExactlyWhatWasAskedForAndNullForWhatIsMissing(t *testing.T) {
	table := queryTable(t)
	options := aztables.ListEntitiesOptions{Filter: pointer("i gt 0"), Select: pointer("RowKey,g")}
	found := list(t, table, &options)
	equal(t, len(found), 3)
	guid := aztables.EDMGUID("a455c695-df98-5678-aaaa-81d3367e5a34")
	for n, expected := range []any{int32(0), guid, int32(0)} {
		// The SDK reads null as the zero value of the first type it tries.
		equal(t, found[n].Properties, properties{"g": expected})
		equal(t, found[n].RowKey, string(rune('a'+n)))
		equal(t, found[n].PartitionKey, "")
		equal(t, found[n].ETag == "", false)
	}
}

func TestSelectDoesNotHidePropertiesFromTheFilter(t *testing.T) {
	table := queryTable(t)
	found := list(t, table, &aztables.ListEntitiesOptions{Filter: pointer("i gt 1"), Select: pointer("s")})
	equal(t, len(found), 2)
	equal(t, found[0].Properties, properties{"s": "O'Brien"})
	equal(t, found[1].Properties, properties{"s": "Banana"})
}
