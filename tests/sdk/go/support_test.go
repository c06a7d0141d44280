// Package sdk tests our server with the official Go SDK, unmodified.
//
// This file is shared by the tests: clients for the server under test, fresh tables, entities as the SDK builds and
// reads them, and checks for refusals.
package sdk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	connectionString = os.Getenv("LAZULITE_CONNECTION_STRING")
	ctx              = context.Background()
	service          *aztables.ServiceClient
)

func TestMain(m *testing.M) {
	if connectionString == "" {
		fmt.Fprintln(os.Stderr, "LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it")
		os.Exit(2)
	}
	client, err := aztables.NewServiceClientFromConnectionString(connectionString, clientOptions())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	service = client
	os.Exit(m.Run())
}

// clientOptions switches retries off: they would hide exactly the answers that these tests look for.
func clientOptions() *aztables.ClientOptions {
	options := &aztables.ClientOptions{}
	options.Retry = policy.RetryOptions{MaxRetries: -1}
	return options
}

// setting is one value of the connection string.
func setting(name string) string {
	for _, part := range strings.Split(connectionString, ";") {
		if value, found := strings.CutPrefix(part, name+"="); found {
			return value
		}
	}
	return ""
}

func endpoint() string { return strings.TrimSuffix(setting("TableEndpoint"), "/") }

func sharedKey(t *testing.T) *aztables.SharedKeyCredential {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential(setting("AccountName"), setting("AccountKey"))
	must(t, err)
	return credential
}

// freshName is a table name that no other test uses.
func freshName() string {
	var bytes [16]byte
	_, _ = rand.Read(bytes[:])
	return "t" + hex.EncodeToString(bytes[:])
}

// namedTable is a fresh, empty table and its name. It is deleted when the test ends.
func namedTable(t *testing.T) (*aztables.Client, string) {
	t.Helper()
	name := freshName()
	_, err := service.CreateTable(ctx, name, nil)
	must(t, err)
	t.Cleanup(func() { _, _ = service.DeleteTable(ctx, name, nil) })
	return service.NewClient(name), name
}

func newTable(t *testing.T) *aztables.Client {
	t.Helper()
	table, _ := namedTable(t)
	return table
}

type properties = map[string]any

// entityIn is an entity as the SDK's own type writes it.
func entityIn(partition, row string, values properties) []byte {
	key := aztables.Entity{PartitionKey: partition, RowKey: row}
	return encode(aztables.EDMEntity{Entity: key, Properties: values})
}

func entity(row string, values properties) []byte { return entityIn("p", row, values) }

// jsonEntity is an entity as a plain map, which is sent unchanged. The SDK's own type doubles single quotes in keys,
// even in the body, where they are plain text.
func jsonEntity(partition, row string, values properties) []byte {
	all := properties{"PartitionKey": partition, "RowKey": row}
	for name, value := range values {
		all[name] = value
	}
	return encode(all)
}

func encode(value any) []byte {
	bytes, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return bytes
}

func decode(t *testing.T, bytes []byte) aztables.EDMEntity {
	t.Helper()
	var found aztables.EDMEntity
	must(t, json.Unmarshal(bytes, &found))
	return found
}

func add(t *testing.T, table *aztables.Client, entity []byte) azcore.ETag {
	t.Helper()
	answer, err := table.AddEntity(ctx, entity, nil)
	must(t, err)
	return answer.ETag
}

func get(t *testing.T, table *aztables.Client, partition, row string) aztables.EDMEntity {
	t.Helper()
	answer, err := table.GetEntity(ctx, partition, row, nil)
	must(t, err)
	return decode(t, answer.Value)
}

// stored returns the properties of row "r" in partition "p", without keys and metadata.
func stored(t *testing.T, table *aztables.Client) properties {
	t.Helper()
	return get(t, table, "p", "r").Properties
}

func list(t *testing.T, table *aztables.Client, options *aztables.ListEntitiesOptions) []aztables.EDMEntity {
	t.Helper()
	found, err := tryList(table, options)
	must(t, err)
	return found
}

func tryList(table *aztables.Client, options *aztables.ListEntitiesOptions) ([]aztables.EDMEntity, error) {
	found := []aztables.EDMEntity{}
	for pager := table.NewListEntitiesPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, bytes := range page.Entities {
			var one aztables.EDMEntity
			if err := json.Unmarshal(bytes, &one); err != nil {
				return nil, err
			}
			found = append(found, one)
		}
	}
	return found, nil
}

// contents is everything in a table, row by row with etags, which a rollback must leave unchanged.
func contents(t *testing.T, table *aztables.Client) map[string]properties {
	t.Helper()
	rows := map[string]properties{}
	for _, found := range list(t, table, nil) {
		found.Properties["etag"] = found.ETag
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
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) {
		t.Fatalf("expected %d %s, got %v", status, code, err)
	}
	if refusal.StatusCode != status || refusal.ErrorCode != code {
		t.Fatalf("expected %d %s, got %d %s\n%v", status, code, refusal.StatusCode, refusal.ErrorCode, err)
	}
	for _, text := range message {
		if !strings.Contains(err.Error(), text) {
			t.Fatalf("%q is not in\n%v", text, err)
		}
	}
}

func notFound(t *testing.T, err error) {
	t.Helper()
	refused(t, err, 404, string(aztables.ResourceNotFound), "The specified resource does not exist.")
}

func notSatisfied(t *testing.T, err error) {
	t.Helper()
	refused(t, err, 412, string(aztables.UpdateConditionNotSatisfied),
		"The update condition specified in the request was not satisfied.")
}

var (
	partStatus  = regexp.MustCompile(`HTTP/1\.1 (\d+) `)
	partMessage = regexp.MustCompile(`"code":"(\w+)","message":\{"lang":"en-US","value":"(?:(\d+):)?`)
)

// failedPart returns index, status and code of the operation that failed a transaction. The SDK reports only the outer
// status, 202, so this reads the response itself. The index is -1 when the service gives none.
func failedPart(t *testing.T, err error) (index, status int, code string) {
	t.Helper()
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) {
		t.Fatalf("expected a failed transaction, got %v", err)
	}
	equal(t, refusal.StatusCode, 202)
	body, err := runtime.Payload(refusal.RawResponse)
	must(t, err)
	line, message := partStatus.FindStringSubmatch(string(body)), partMessage.FindStringSubmatch(string(body))
	if line == nil || message == nil {
		t.Fatalf("no failed part in\n%s", body)
	}
	status, _ = strconv.Atoi(line[1])
	index = -1
	if message[2] != "" {
		index, _ = strconv.Atoi(message[2])
	}
	return index, status, message[1]
}

func pointer[T any](value T) *T { return &value }
