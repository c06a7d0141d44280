package oldsdk

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/storage"
)

func TestAWrongKeyIsNotAuthentic(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte("wrong"))
	made, err := storage.NewClient(settings["AccountName"], key, storage.DefaultBaseURL, apiVersion, false)
	must(t, err)
	other := ready(made)
	tables := other.GetTableService()
	_, err = tables.QueryTables(storage.MinimalMetadata, nil)
	refused(t, err, 403, "AuthenticationFailed")
}

// The client can sign with Shared Key Lite too.
func TestBothFormsOfSharedKeyPass(t *testing.T) {
	for _, lite := range []bool{true, false} {
		made, err := storage.NewClient(settings["AccountName"], settings["AccountKey"], storage.DefaultBaseURL, apiVersion, false)
		must(t, err)
		made.UseSharedKeyLite = lite
		other := ready(made)
		tables := other.GetTableService()
		table := tables.GetTableReference(freshName())
		must(t, table.Create(timeout, storage.EmptyPayload, nil))
		insert(t, entity(table, "a", properties{"n": "1"}))
		batch := table.NewBatch()
		batch.MergeEntity(entity(table, "a", properties{"m": "2"}))
		must(t, batch.ExecuteBatch())
		equal(t, get(t, table, "p", "a").Properties, properties{"n": "1", "m": "2"})
		must(t, table.Delete(timeout, nil))
	}
}

func TestAnErrorNamesTheRequest(t *testing.T) {
	err := newTable(t).GetEntityReference("p", "missing").Get(timeout, storage.FullMetadata, nil)
	var refusal storage.AzureStorageServiceError
	equal(t, errors.As(err, &refusal), true)
	equal(t, len(refusal.RequestID), 36)
	equal(t, refusal.APIVersion, apiVersion)
}

func TestInsertsThatAreRefused(t *testing.T) {
	large := properties{}
	for n := 0; n < 17; n++ {
		large[fmt.Sprintf("p%d", n)] = strings.Repeat("x", 32768)
	}
	for code, values := range map[string]properties{
		"PropertyValueTooLarge": {"text": strings.Repeat("x", 32769)},
		"EntityTooLarge":        large,
		"PropertyNameInvalid":   {"a-b": 1},
		"PropertyNameTooLong":   {strings.Repeat("n", 256): 1},
	} {
		t.Run(code, func(t *testing.T) {
			refused(t, entity(newTable(t), "a", values).Insert(storage.EmptyPayload, nil), 400, code)
		})
	}
}
