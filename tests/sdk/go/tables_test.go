// Tables: create, list, filter, delete.

package sdk

import (
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func tableNames(t *testing.T, options *aztables.ListTablesOptions) []string {
	t.Helper()
	names := []string{}
	for pager := service.NewListTablesPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		must(t, err)
		for _, table := range page.Tables {
			names = append(names, *table.Name)
		}
	}
	return names
}

func createTables(t *testing.T, suffixes string) []string {
	t.Helper()
	prefix, created := freshName(), []string{}
	for _, suffix := range suffixes {
		name := prefix + string(suffix)
		_, err := service.CreateTable(ctx, name, nil)
		must(t, err)
		t.Cleanup(func() { _, _ = service.DeleteTable(ctx, name, nil) })
		created = append(created, name)
	}
	return created
}

func TestACreatedTableIsListedAndADeletedOneIsNot(t *testing.T) {
	name := freshName()
	equal(t, slices.Contains(tableNames(t, nil), name), false)
	created, err := service.CreateTable(ctx, name, nil)
	must(t, err)
	equal(t, *created.TableName, name)
	equal(t, slices.Contains(tableNames(t, nil), name), true)
	_, err = service.DeleteTable(ctx, name, nil)
	must(t, err)
	equal(t, slices.Contains(tableNames(t, nil), name), false)
}

func TestATableClientCreatesAndDeletesItsOwnTable(t *testing.T) {
	name := freshName()
	table := service.NewClient(name)
	created, err := table.CreateTable(ctx, nil)
	must(t, err)
	equal(t, *created.TableName, name)
	_, err = table.Delete(ctx, nil)
	must(t, err)
	equal(t, slices.Contains(tableNames(t, nil), name), false)
}

func TestCreatingATableTwiceIsAConflictAndKeepsWhatIsInIt(t *testing.T) {
	name := freshName()
	table := service.NewClient(name)
	_, err := table.CreateTable(ctx, nil)
	must(t, err)
	add(t, table, entity("r", properties{"n": int32(7)}))
	_, err = table.CreateTable(ctx, nil)
	refused(t, err, 409, string(aztables.TableAlreadyExists), "The table specified already exists.")
	_, err = service.CreateTable(ctx, strings.ToUpper(name), nil)
	refused(t, err, 409, string(aztables.TableAlreadyExists))
	equal(t, stored(t, table), properties{"n": int32(7)})
	_, err = table.Delete(ctx, nil)
	must(t, err)
}

func TestDeletingAMissingTableIsNotFound(t *testing.T) {
	_, err := service.DeleteTable(ctx, freshName(), nil)
	notFound(t, err)
}

func TestATableIsFoundWhateverTheCaseOfItsName(t *testing.T) {
	created := createTables(t, "x")[0]
	add(t, service.NewClient(created), entity("r", properties{"n": int32(1)}))
	equal(t, stored(t, service.NewClient(strings.ToUpper(created))), properties{"n": int32(1)})
}

func TestListingKeepsTheCaseOfNames(t *testing.T) {
	name := "Mixed" + strings.ToUpper(freshName())
	_, err := service.CreateTable(ctx, name, nil)
	must(t, err)
	equal(t, slices.Contains(tableNames(t, nil), name), true)
	_, err = service.DeleteTable(ctx, strings.ToLower(name), nil)
	must(t, err)
	equal(t, slices.Contains(tableNames(t, nil), name), false)
}

func TestATableCreatedAgainIsEmpty(t *testing.T) {
	table := service.NewClient(freshName())
	_, err := table.CreateTable(ctx, nil)
	must(t, err)
	add(t, table, entity("r", nil))
	_, err = table.Delete(ctx, nil)
	must(t, err)
	_, err = table.CreateTable(ctx, nil)
	must(t, err)
	equal(t, len(list(t, table, nil)), 0)
	_, err = table.Delete(ctx, nil)
	must(t, err)
}

func TestAFilterFindsTablesByNameAndByRangeInOrder(t *testing.T) {
	created := createTables(t, "abcde")
	filtered := func(filter string) []string {
		return tableNames(t, &aztables.ListTablesOptions{Filter: &filter})
	}
	equal(t, filtered("TableName eq '"+created[2]+"'"), created[2:3])
	equal(t, filtered("TableName ge '"+created[1]+"' and TableName lt '"+created[4]+"'"), created[1:4])
	equal(t, filtered("TableName eq '"+freshName()+"'"), []string{})
}

func TestPagesOfTablesGiveEachOnceAndASavedTokenResumes(t *testing.T) {
	created := createTables(t, "abcde")
	filter := "TableName ge '" + created[0] + "' and TableName lt '" + created[4] + "z'"
	options := aztables.ListTablesOptions{Filter: &filter, Top: pointer(int32(2))}
	equal(t, tableNames(t, &options), created)

	first, err := service.NewListTablesPager(&options).NextPage(ctx)
	must(t, err)
	equal(t, len(first.Tables), 2)
	options.NextTableName = first.NextTableName
	equal(t, tableNames(t, &options), created[2:])
}

func TestFullMetadataOfATableNamesItsTypeAndLinks(t *testing.T) {
	name := createTables(t, "x")[0]
	filter := "TableName eq '" + name + "'"
	options := aztables.ListTablesOptions{Filter: &filter, Format: pointer(aztables.MetadataFormatFull)}
	page, err := service.NewListTablesPager(&options).NextPage(ctx)
	must(t, err)
	equal(t, len(page.Tables), 1)
	text := string(page.Tables[0].Value)
	for _, part := range []string{
		`"odata.editLink":"Tables('` + name + `')"`,
		`"odata.id":"` + endpoint() + `/Tables('` + name + `')"`,
		`"odata.type":"` + setting("AccountName") + `.Tables"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}

func TestIllegalTableNamesAreRefused(t *testing.T) {
	for name, code := range map[string]string{
		"ab":                    "OutOfRangeInput",
		strings.Repeat("a", 64): "OutOfRangeInput",
		"1abc":                  "InvalidResourceName",
		"a-b-c":                 "InvalidResourceName",
		"with space":            "InvalidResourceName",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := service.CreateTable(ctx, name, nil)
			refused(t, err, 400, code)
		})
	}
}

func TestEntitiesOfAMissingTableAreNotFound(t *testing.T) {
	missing := service.NewClient(freshName())
	for name, call := range map[string]func() error{
		"add":    func() error { _, err := missing.AddEntity(ctx, entity("r", nil), nil); return err },
		"get":    func() error { _, err := missing.GetEntity(ctx, "p", "r", nil); return err },
		"update": func() error { _, err := missing.UpdateEntity(ctx, entity("r", nil), nil); return err },
		"upsert": func() error { _, err := missing.UpsertEntity(ctx, entity("r", nil), nil); return err },
		"delete": func() error { _, err := missing.DeleteEntity(ctx, "p", "r", nil); return err },
		"list":   func() error { _, err := tryList(missing, nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, call(), 404, string(aztables.TableNotFound), "The table specified does not exist.")
		})
	}
}
