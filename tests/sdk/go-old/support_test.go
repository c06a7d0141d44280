// Package oldsdk tests our server with the older Go client, unmodified.
//
// This file is shared by the tests: clients for the server under test, fresh tables, and checks for refusals.
package oldsdk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/storage"
)

// timeout is in seconds; the client sends it with every request.
const timeout = 30

const oldETag = `W/"datetime'2001-01-01T00%3A00%3A00Z'"`

var (
	settings = map[string]string{}
	client   storage.Client
	service  storage.TableServiceClient
)

func TestMain(m *testing.M) {
	for _, part := range strings.Split(os.Getenv("LAZULITE_CONNECTION_STRING"), ";") {
		if name, value, found := strings.Cut(part, "="); found {
			settings[name] = value
		}
	}
	if len(settings) == 0 {
		fmt.Fprintln(os.Stderr, "LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it")
		os.Exit(2)
	}
	made, err := storage.NewClient(settings["AccountName"], settings["AccountKey"], storage.DefaultBaseURL, apiVersion, false)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	client = ready(made)
	service = client.GetTableService()
	os.Exit(m.Run())
}

const apiVersion = storage.DefaultAPIVersion

// ready gives a client its way to the server, and no retries, which would hide the answers that these tests look for.
// The client knows the emulator's address only at its usual port, so the connection goes elsewhere.
func ready(made storage.Client) storage.Client {
	endpoint, _ := url.Parse(settings["TableEndpoint"])
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, endpoint.Host)
	}
	made.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: dial}}
	made.Sender = &storage.DefaultSender{RetryAttempts: 1}
	return made
}

// freshName is a table name that no other test uses.
func freshName() string {
	var bytes [16]byte
	_, _ = rand.Read(bytes[:])
	return "t" + hex.EncodeToString(bytes[:])
}

// newTable is a fresh, empty table. It is deleted when the test ends.
func newTable(t *testing.T) *storage.Table {
	t.Helper()
	table := service.GetTableReference(freshName())
	must(t, table.Create(timeout, storage.EmptyPayload, nil))
	t.Cleanup(func() { _ = table.Delete(timeout, nil) })
	return table
}

type properties = map[string]interface{}

func entity(table *storage.Table, row string, values properties) *storage.Entity {
	return entityIn(table, "p", row, values)
}

func entityIn(table *storage.Table, partition, row string, values properties) *storage.Entity {
	made := table.GetEntityReference(partition, row)
	made.Properties = values
	return made
}

func insert(t *testing.T, entity *storage.Entity) *storage.Entity {
	t.Helper()
	must(t, entity.Insert(storage.FullMetadata, nil))
	return entity
}

func get(t *testing.T, table *storage.Table, partition, row string) *storage.Entity {
	t.Helper()
	found := table.GetEntityReference(partition, row)
	must(t, found.Get(timeout, storage.FullMetadata, nil))
	return found
}

// list is everything that a query finds, page after page, and the sizes of the pages.
func list(t *testing.T, table *storage.Table, options *storage.QueryOptions) (all []*storage.Entity, sizes []int) {
	t.Helper()
	page, err := table.QueryEntities(timeout, storage.FullMetadata, options)
	for {
		must(t, err)
		all = append(all, page.Entities...)
		sizes = append(sizes, len(page.Entities))
		if page.NextLink == nil {
			return all, sizes
		}
		page, err = page.NextResults(nil)
	}
}

// contents is everything in a table, row by row with etags, which a rollback must leave unchanged.
func contents(t *testing.T, table *storage.Table) map[string]properties {
	t.Helper()
	rows := map[string]properties{}
	all, _ := list(t, table, nil)
	for _, found := range all {
		found.Properties["etag"] = found.OdataEtag
		rows[found.RowKey] = found.Properties
	}
	return rows
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("found    %#v\nexpected %#v", found, expected)
	}
}

// refused expects the service's refusal with this status and code, and the message if one is given.
func refused(t *testing.T, err error, status int, code string, message ...string) {
	t.Helper()
	var refusal storage.AzureStorageServiceError
	if !errors.As(err, &refusal) {
		t.Fatalf("expected %d %s, got %v", status, code, err)
	}
	if refusal.StatusCode != status || refusal.Code != code {
		t.Fatalf("expected %d %s, got %d %s\n%v", status, code, refusal.StatusCode, refusal.Code, err)
	}
	for _, text := range message {
		if !strings.Contains(err.Error(), text) {
			t.Fatalf("%q is not in\n%v", text, err)
		}
	}
}

// notSatisfied expects the error that the client makes of a 412: a text, without the type of other refusals.
func notSatisfied(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), "Etag didn't match: ") ||
		!strings.Contains(err.Error(), "StatusCode=412, ErrorCode=UpdateConditionNotSatisfied") {
		t.Fatalf("expected 412 UpdateConditionNotSatisfied, got %v", err)
	}
}
