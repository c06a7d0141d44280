// Entities: every verb, with and without an etag.

package sdk

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var bothModes = map[string]aztables.UpdateMode{
	"merge":   aztables.UpdateModeMerge,
	"replace": aztables.UpdateModeReplace,
}

func update(table *aztables.Client, mode aztables.UpdateMode, etag *azcore.ETag, values properties) (azcore.ETag, error) {
	options := aztables.UpdateEntityOptions{IfMatch: etag, UpdateMode: mode}
	answer, err := table.UpdateEntity(ctx, entity("r", values), &options)
	return answer.ETag, err
}

func upsert(table *aztables.Client, mode aztables.UpdateMode, values properties) (azcore.ETag, error) {
	answer, err := table.UpsertEntity(ctx, entity("r", values), &aztables.UpsertEntityOptions{UpdateMode: mode})
	return answer.ETag, err
}

func TestInsertAnswersWithTheEntityAndGetReturnsIt(t *testing.T) {
	table := newTable(t)
	answer, err := table.AddEntity(ctx, entity("r", properties{"name": "Ada", "age": int32(36)}), nil)
	must(t, err)
	inserted := decode(t, answer.Value)
	equal(t, inserted.Properties, properties{"name": "Ada", "age": int32(36)})
	found := get(t, table, "p", "r")
	equal(t, found.Properties, inserted.Properties)
	equal(t, found.ETag, string(answer.ETag))
	equal(t, found.Timestamp, inserted.Timestamp)
}

func TestTheEtagHasTheFormOfTheLiveServiceAndCarriesTheTimestamp(t *testing.T) {
	table := newTable(t)
	etag := add(t, table, entity("r", nil))
	text, err := get(t, table, "p", "r").Timestamp.MarshalText()
	must(t, err)
	equal(t, string(etag), `W/"datetime'`+strings.ReplaceAll(string(text), ":", "%3A")+`'"`)
}

func TestInsertOfAnExistingEntityIsAConflictAndChangesNothing(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"n": int32(1)}))
	_, err := table.AddEntity(ctx, entity("r", properties{"n": int32(2)}), nil)
	refused(t, err, 409, string(aztables.EntityAlreadyExists), "The specified entity already exists.")
	equal(t, stored(t, table), properties{"n": int32(1)})
}

func TestGetOfAMissingEntityIsNotFound(t *testing.T) {
	_, err := newTable(t).GetEntity(ctx, "p", "r", nil)
	notFound(t, err)
}

func TestKeysAreCaseSensitive(t *testing.T) {
	table := newTable(t)
	add(t, table, entityIn("P", "R", properties{"n": int32(1)}))
	for _, key := range [][2]string{{"p", "R"}, {"P", "r"}} {
		_, err := table.GetEntity(ctx, key[0], key[1], nil)
		notFound(t, err)
	}
	add(t, table, entity("r", properties{"n": int32(2)}))
	equal(t, get(t, table, "P", "R").Properties, properties{"n": int32(1)})
	equal(t, stored(t, table), properties{"n": int32(2)})
}

func TestUpdateReplaceDropsWhatItDoesNotMention(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"kept": int32(1), "dropped": int32(2)}))
	_, err := update(table, aztables.UpdateModeReplace, nil, properties{"kept": int32(3), "added": int32(4)})
	must(t, err)
	equal(t, stored(t, table), properties{"kept": int32(3), "added": int32(4)})
}

func TestUpdateMergeKeepsWhatItDoesNotMention(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"kept": int32(1), "changed": int32(2)}))
	_, err := update(table, aztables.UpdateModeMerge, nil, properties{"changed": "now text", "added": int32(4)})
	must(t, err)
	equal(t, stored(t, table), properties{"kept": int32(1), "changed": "now text", "added": int32(4)})
}

func TestUpdateWithoutOptionsMerges(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"kept": int32(1)}))
	_, err := table.UpdateEntity(ctx, entity("r", properties{"added": int32(2)}), nil)
	must(t, err)
	equal(t, stored(t, table), properties{"kept": int32(1), "added": int32(2)})
}

func TestUpdateOfAMissingEntityIsNotFound(t *testing.T) {
	for name, mode := range bothModes {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			_, err := update(table, mode, nil, properties{"n": int32(1)})
			notFound(t, err)
			equal(t, len(list(t, table, nil)), 0)
		})
	}
}

func TestUpdateWithTheRightEtagSucceedsAndGivesANewOne(t *testing.T) {
	for name, mode := range bothModes {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			etag := add(t, table, entity("r", properties{"n": int32(1)}))
			updated, err := update(table, mode, &etag, properties{"n": int32(2)})
			must(t, err)
			equal(t, updated == etag, false)
			found := get(t, table, "p", "r")
			equal(t, found.Properties, properties{"n": int32(2)})
			equal(t, found.ETag, string(updated))
		})
	}
}

func TestUpdateWithAnOldEtagFailsAndChangesNothing(t *testing.T) {
	for name, mode := range bothModes {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			old := add(t, table, entity("r", properties{"n": int32(1)}))
			current, err := update(table, mode, nil, properties{"n": int32(2)})
			must(t, err)
			_, err = update(table, mode, &old, properties{"n": int32(3)})
			notSatisfied(t, err)
			found := get(t, table, "p", "r")
			equal(t, found.Properties, properties{"n": int32(2)})
			equal(t, found.ETag, string(current))
		})
	}
}

func TestUpdateWithAnEtagOfAMissingEntityIsNotFound(t *testing.T) {
	for name, mode := range bothModes {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			etag := add(t, table, entity("r", nil))
			_, err := table.DeleteEntity(ctx, "p", "r", nil)
			must(t, err)
			_, err = update(table, mode, &etag, properties{"n": int32(2)})
			notFound(t, err)
		})
	}
}

func TestUpsertInsertsWhatIsMissing(t *testing.T) {
	for name, mode := range bothModes {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			etag, err := upsert(table, mode, properties{"n": int32(1)})
			must(t, err)
			found := get(t, table, "p", "r")
			equal(t, found.Properties, properties{"n": int32(1)})
			equal(t, found.ETag, string(etag))
		})
	}
}

func TestUpsertMergeKeepsAndUpsertReplaceDrops(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"a": int32(1), "b": int32(2)}))
	_, err := upsert(table, aztables.UpdateModeMerge, properties{"b": int32(3)})
	must(t, err)
	equal(t, stored(t, table), properties{"a": int32(1), "b": int32(3)})
	_, err = upsert(table, aztables.UpdateModeReplace, properties{"c": int32(4)})
	must(t, err)
	equal(t, stored(t, table), properties{"c": int32(4)})
}

func TestANullInAMergeLeavesTheStoredValueAndInAReplaceRemovesIt(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"a": int32(1), "b": int32(2)}))
	_, err := update(table, aztables.UpdateModeMerge, nil, properties{"a": nil, "b": int32(3)})
	must(t, err)
	equal(t, stored(t, table), properties{"a": int32(1), "b": int32(3)})
	_, err = update(table, aztables.UpdateModeReplace, nil, properties{"a": nil, "b": int32(4)})
	must(t, err)
	equal(t, stored(t, table), properties{"b": int32(4)})
}

func TestDeleteRemovesAndDeleteOfAMissingEntityIsNotFound(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", nil))
	_, err := table.DeleteEntity(ctx, "p", "r", nil)
	must(t, err)
	equal(t, len(list(t, table, nil)), 0)
	_, err = table.DeleteEntity(ctx, "p", "r", nil)
	notFound(t, err)
}

func TestDeleteMindsTheEtag(t *testing.T) {
	table := newTable(t)
	old := add(t, table, entity("r", properties{"n": int32(1)}))
	current, err := update(table, aztables.UpdateModeReplace, nil, properties{"n": int32(2)})
	must(t, err)
	_, err = table.DeleteEntity(ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &old})
	notSatisfied(t, err)
	equal(t, stored(t, table), properties{"n": int32(2)})
	_, err = table.DeleteEntity(ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &current})
	must(t, err)
	equal(t, len(list(t, table, nil)), 0)
}

func TestAnEtagFromAListingIsTheEtag(t *testing.T) {
	table := newTable(t)
	etag := add(t, table, entity("r", properties{"n": int32(1)}))
	listed := list(t, table, nil)[0]
	equal(t, listed.ETag, string(etag))
	read := azcore.ETag(listed.ETag)
	_, err := update(table, aztables.UpdateModeMerge, &read, properties{"n": int32(2)})
	must(t, err)
	equal(t, stored(t, table), properties{"n": int32(2)})
}

func TestAnEtagOfAPreviousLifeDoesNotMatchTheNext(t *testing.T) {
	table := newTable(t)
	old := add(t, table, entity("r", properties{"n": int32(1)}))
	_, err := table.DeleteEntity(ctx, "p", "r", nil)
	must(t, err)
	add(t, table, entity("r", properties{"n": int32(2)}))
	_, err = update(table, aztables.UpdateModeMerge, &old, properties{"n": int32(3)})
	notSatisfied(t, err)
	equal(t, stored(t, table), properties{"n": int32(2)})
}

func TestAMalformedEtagIsRefused(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"n": int32(1)}))
	_, err := update(table, aztables.UpdateModeMerge, pointer(azcore.ETag("nonsense")), properties{"n": int32(2)})
	refused(t, err, 400, string(aztables.InvalidInput), "The etag value 'nonsense' specified")
	equal(t, stored(t, table), properties{"n": int32(1)})
}

func TestEveryWriteGivesANewEtagAndALaterTimestamp(t *testing.T) {
	table := newTable(t)
	etags := map[azcore.ETag]bool{add(t, table, entity("r", properties{"n": int32(0)})): true}
	last := time.Time(get(t, table, "p", "r").Timestamp)
	for n := range int32(20) {
		etag, err := update(table, aztables.UpdateModeMerge, nil, properties{"n": n})
		must(t, err)
		etags[etag] = true
		next := time.Time(get(t, table, "p", "r").Timestamp)
		equal(t, next.After(last), true)
		last = next
	}
	equal(t, len(etags), 21)
}

func TestAClientTimestampIsIgnored(t *testing.T) {
	table := newTable(t)
	add(t, table, jsonEntity("p", "r", properties{"Timestamp": "2001-01-01T00:00:00Z"}))
	equal(t, time.Time(get(t, table, "p", "r").Timestamp).Year() > 2001, true)
}

func TestMetadataLevels(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"big": aztables.EDMInt64(5)}))
	for name, one := range map[string]struct {
		format   aztables.MetadataFormat
		expected []string
	}{
		"none":    {aztables.MetadataFormatNone, nil},
		"minimal": {aztables.MetadataFormatMinimal, []string{"big@odata.type", "odata.etag", "odata.metadata"}},
		"full": {aztables.MetadataFormatFull, []string{
			"Timestamp@odata.type", "big@odata.type", "odata.editLink", "odata.etag", "odata.id", "odata.metadata", "odata.type",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := table.GetEntity(ctx, "p", "r", &aztables.GetEntityOptions{Format: &one.format})
			must(t, err)
			var found map[string]json.RawMessage
			must(t, json.Unmarshal(answer.Value, &found))
			for _, annotation := range one.expected {
				if _, there := found[annotation]; !there {
					t.Errorf("%s is missing in %s", annotation, answer.Value)
				}
			}
			equal(t, len(found), 4+len(one.expected)) // three system properties and `big`
			equal(t, string(found["big"]), `"5"`)
		})
	}
}
