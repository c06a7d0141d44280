// Property types: values come back equal and of the same type, also at the extremes.

package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// roundtrip sends a value and expects it from the insert's answer, a point read, a listing, and after writing back the
// entity that was read.
func roundtrip(t *testing.T, value any) {
	t.Helper()
	table := newTable(t)
	answer, err := table.AddEntity(ctx, entity("r", properties{"v": value}), nil)
	must(t, err)
	equal(t, decode(t, answer.Value).Properties["v"], value)
	found := get(t, table, "p", "r")
	equal(t, found.Properties["v"], value)
	equal(t, list(t, table, nil)[0].Properties["v"], value)
	_, err = table.UpdateEntity(ctx, encode(found), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	must(t, err)
	equal(t, stored(t, table), properties{"v": value})
}

func TestInt32(t *testing.T) {
	for _, n := range []int32{0, 1, -1, math.MaxInt32, math.MinInt32} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { roundtrip(t, n) })
	}
}

func TestInt64(t *testing.T) {
	for _, n := range []int64{0, -1, 1 << 31, 1<<53 + 1, math.MaxInt64, math.MinInt64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { roundtrip(t, aztables.EDMInt64(n)) })
	}
}

func TestDouble(t *testing.T) {
	for _, x := range []float64{
		0.1, 1.0 / 3, 3.1, -2.5, 1e21, 1e-7, 123456789012345.12, math.MaxFloat64, math.SmallestNonzeroFloat64,
	} {
		t.Run(fmt.Sprint(x), func(t *testing.T) { roundtrip(t, x) })
	}
}

func TestADoubleWithoutAFractionStaysADouble(t *testing.T) {
	table := newTable(t)
	add(t, table, jsonEntity("p", "r", properties{"v": 5, "v@odata.type": "Edm.Double"}))
	// The SDK reads `5.0` as a whole number, so ask the server for the type: an Int32 does not compare with 5.0.
	found := list(t, table, &aztables.ListEntitiesOptions{Filter: pointer("v eq 5.0")})
	equal(t, len(found), 1)
	equal(t, found[0].Properties, properties{"v": int32(5)})
}

func TestSpecialDoublesAreText(t *testing.T) {
	for _, special := range []string{"NaN", "Infinity", "-Infinity"} {
		t.Run(special, func(t *testing.T) {
			table := newTable(t)
			// JSON has no such numbers and the SDK no type for them, so they travel as text with an annotation.
			add(t, table, jsonEntity("p", "r", properties{"v": special, "v@odata.type": "Edm.Double"}))
			answer, err := table.GetEntity(ctx, "p", "r", nil)
			must(t, err)
			var found properties
			must(t, json.Unmarshal(answer.Value, &found))
			equal(t, found["v"], special)
			equal(t, found["v@odata.type"], "Edm.Double")
		})
	}
}

func TestAnIntegerBeyondInt32WithoutATypeIsADouble(t *testing.T) {
	table := newTable(t)
	add(t, table, jsonEntity("p", "r", properties{"v": 50000000000}))
	equal(t, stored(t, table), properties{"v": float64(50000000000)})
}

func TestBoolean(t *testing.T) {
	for _, value := range []bool{true, false} {
		t.Run(fmt.Sprint(value), func(t *testing.T) { roundtrip(t, value) })
	}
}

func TestDateTime(t *testing.T) {
	for _, text := range []string{
		"1601-01-01T00:00:00Z", "1601-01-01T00:00:00.0000001Z", "1969-12-31T23:59:59.999Z", "2024-02-29T12:30:15.25Z",
		"2020-01-01T01:02:03.1234567Z", "9999-12-31T23:59:59.9999999Z",
	} {
		t.Run(text, func(t *testing.T) {
			date, err := time.Parse(time.RFC3339Nano, text)
			must(t, err)
			roundtrip(t, aztables.EDMDateTime(date))
		})
	}
}

func TestGUID(t *testing.T) {
	for _, text := range []string{
		"00000000-0000-0000-0000-000000000000", "c9da6455-213d-42c9-9a79-3e9149a57833", "ffffffff-ffff-ffff-ffff-ffffffffffff",
	} {
		t.Run(text, func(t *testing.T) { roundtrip(t, aztables.EDMGUID(text)) })
	}
}

func TestAGUIDInCapitalsComesBackInSmallLetters(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"v": aztables.EDMGUID("C9DA6455-213D-42C9-9A79-3E9149A57833")}))
	equal(t, stored(t, table), properties{"v": aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833")})
}

func TestBinary(t *testing.T) {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	for name, value := range map[string][]byte{
		"empty":           {},
		"all byte values": all,
		"64 KiB":          bytes.Repeat(all, 256),
	} {
		t.Run(name, func(t *testing.T) { roundtrip(t, aztables.EDMBinary(value)) })
	}
}

func TestString(t *testing.T) {
	for name, value := range map[string]string{
		"empty":                "",
		"blank":                " ",
		"leading and trailing": "  leading and trailing  ",
		"control characters":   "line\r\nbreak\ttab\x00\x1f end",
		"quotes":               "quotes ' \" \\ / {} [] \u2028",
		"other scripts":        "käse ß 日本語 العربية",
		"emoji":                "😀 👩‍🚀 \U0010ffff \U00010000",
		"private use":          "\ufffd \ufeff \ue000",
		"looks like a double":  "NaN",
		"looks like a date":    "2020-01-01T00:00:00Z",
		"looks like a GUID":    "c9da6455-213d-42c9-9a79-3e9149a57833",
		"32 Ki characters":     strings.Repeat("x", 32768),
		"16 Ki emoji":          strings.Repeat("😀", 16384),
	} {
		t.Run(name, func(t *testing.T) { roundtrip(t, value) })
	}
}

func TestAllTypesInOneEntity(t *testing.T) {
	table := newTable(t)
	sent := properties{
		"text": "text", "int32": int32(-7), "int64": aztables.EDMInt64(1 << 40), "double": 2.5, "boolean": false,
		"date":   aztables.EDMDateTime(time.Date(2021, 3, 4, 5, 6, 7, 890_000_000, time.UTC)),
		"guid":   aztables.EDMGUID("a455c695-df98-5678-aaaa-81d3367e5a34"),
		"binary": aztables.EDMBinary{0, 1, 2},
	}
	add(t, table, entity("r", sent))
	equal(t, stored(t, table), sent)
}

func TestNullIsNotStored(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"a": nil, "b": int32(1)}))
	equal(t, stored(t, table), properties{"b": int32(1)})
}
