package oldsdk

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/storage"
	"github.com/Azure/go-autorest/autorest/azure"
)

// withSas is a service with a signature for the account. The client knows no other for tables, and it sends batches
// without the signature, so these tests have none.
func withSas(t *testing.T, change func(*storage.AccountSASTokenOptions)) storage.TableServiceClient {
	t.Helper()
	options := storage.AccountSASTokenOptions{
		Services:      storage.Services{Table: true},
		ResourceTypes: storage.ResourceTypes{Service: true, Container: true, Object: true},
		Permissions:   storage.Permissions{Read: true, Write: true, Delete: true, List: true, Add: true, Update: true},
		Expiry:        time.Now().Add(10 * time.Minute),
	}
	if change != nil {
		change(&options)
	}
	token, err := client.GetAccountSASToken(options)
	must(t, err)
	signed := ready(storage.NewAccountSASClient(settings["AccountName"], token, azure.PublicCloud))
	return signed.GetTableService()
}

func TestAnAccountSignatureDoesEverything(t *testing.T) {
	sas := withSas(t, nil)
	table := sas.GetTableReference(freshName())
	must(t, table.Create(timeout, storage.EmptyPayload, nil))
	insert(t, entity(table, "a", properties{"n": "1"}))
	must(t, entity(table, "a", properties{"n": "2"}).Merge(true, nil))
	must(t, entity(table, "a", properties{"n": "3"}).Update(true, nil))
	must(t, entity(table, "b", properties{"n": "1"}).InsertOrMerge(nil))
	must(t, entity(table, "b", nil).Delete(true, nil))
	equal(t, len(contents(t, table)), 1)
	page, err := sas.QueryTables(storage.MinimalMetadata, &storage.QueryTablesOptions{Filter: "TableName eq '" + table.Name + "'"})
	must(t, err)
	equal(t, len(page.Tables), 1)
	_, err = sas.GetServiceProperties()
	must(t, err)
	must(t, table.Delete(timeout, nil))
}

func TestAnAccountSignatureHoldsForItsBoundsOnly(t *testing.T) {
	table := newTable(t)
	insert(t, entity(table, "a", properties{}))
	read := func(sas storage.TableServiceClient) error {
		return sas.GetTableReference(table.Name).GetEntityReference("p", "a").Get(timeout, storage.FullMetadata, nil)
	}
	reader := withSas(t, func(options *storage.AccountSASTokenOptions) { options.Permissions = storage.Permissions{Read: true} })
	must(t, read(reader))
	err := entity(reader.GetTableReference(table.Name), "a", nil).Delete(true, nil)
	refused(t, err, 403, "AuthorizationPermissionMismatch")
	for code, change := range map[string]func(*storage.AccountSASTokenOptions){
		"AuthorizationResourceTypeMismatch": func(options *storage.AccountSASTokenOptions) {
			options.ResourceTypes = storage.ResourceTypes{Service: true}
		},
		"AuthorizationServiceMismatch": func(options *storage.AccountSASTokenOptions) {
			options.Services = storage.Services{Blob: true}
		},
		"AuthorizationSourceIPMismatch": func(options *storage.AccountSASTokenOptions) { options.IP = "10.1.2.3" },
		"AuthenticationFailed":          func(options *storage.AccountSASTokenOptions) { options.Expiry = time.Now().Add(-time.Hour) },
	} {
		t.Run(code, func(t *testing.T) { refused(t, read(withSas(t, change)), 403, code) })
	}
	must(t, read(withSas(t, func(options *storage.AccountSASTokenOptions) {
		options.Start, options.IP = time.Now().Add(-time.Minute), "127.0.0.0-127.0.0.9"
	})))
}
