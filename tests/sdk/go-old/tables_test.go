package oldsdk

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/storage"
)

func TestCreateAndDeleteATable(t *testing.T) {
	for name, level := range map[string]storage.MetadataLevel{
		"empty": storage.EmptyPayload, "none": storage.NoMetadata, "minimal": storage.MinimalMetadata, "full": storage.FullMetadata,
	} {
		t.Run(name, func(t *testing.T) {
			table := service.GetTableReference(freshName())
			must(t, table.Create(timeout, level, nil))
			if level == storage.FullMetadata {
				equal(t, table.OdataType, settings["AccountName"]+".Tables")
				equal(t, strings.HasSuffix(table.OdataID, "/Tables('"+table.Name+"')"), true)
				equal(t, table.OdataEditLink, "Tables('"+table.Name+"')")
			}
			found := service.GetTableReference(table.Name)
			must(t, found.Get(timeout, storage.FullMetadata))
			equal(t, strings.HasSuffix(found.OdataMetadata, "/$metadata#Tables/@Element"), true)
			must(t, table.Delete(timeout, nil))
			refused(t, found.Get(timeout, storage.FullMetadata), 404, "ResourceNotFound")
		})
	}
}

func TestASecondCreateConflicts(t *testing.T) {
	table := newTable(t)
	refused(t, table.Create(timeout, storage.EmptyPayload, nil), 409, "TableAlreadyExists", "The table specified already exists.")
}

func TestDeleteOfAMissingTableIsNotFound(t *testing.T) {
	refused(t, service.GetTableReference(freshName()).Delete(timeout, nil), 404, "ResourceNotFound")
}

func TestANameThatIsNoneIsRefused(t *testing.T) {
	refused(t, service.GetTableReference("no-name").Create(timeout, storage.EmptyPayload, nil), 400, "InvalidResourceName")
}

func TestTablesAreListedInPages(t *testing.T) {
	start, names := freshName(), []string{}
	for _, end := range []string{"a", "b", "c", "d", "e"} {
		names = append(names, start+end)
		table := service.GetTableReference(start + end)
		must(t, table.Create(timeout, storage.EmptyPayload, nil))
		t.Cleanup(func() { _ = table.Delete(timeout, nil) })
	}
	options := &storage.QueryTablesOptions{Top: 2, Filter: "TableName ge '" + start + "' and TableName lt '" + start + "z'"}
	found, sizes := []string{}, []int{}
	page, err := service.QueryTables(storage.MinimalMetadata, options)
	for {
		must(t, err)
		sizes = append(sizes, len(page.Tables))
		for _, table := range page.Tables {
			found = append(found, table.Name)
		}
		if page.NextLink == nil {
			break
		}
		page, err = page.NextResults(nil)
	}
	equal(t, found, names)
	equal(t, sizes, []int{2, 2, 1})
}
