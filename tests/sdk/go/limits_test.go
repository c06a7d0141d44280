// Limits: the largest accepted, the smallest refused, and requests without valid credentials.

package sdk

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func many(count int, value any) properties {
	all := properties{}
	for n := range count {
		all[fmt.Sprintf("p%d", n)] = value
	}
	return all
}

func TestAcceptedAtTheLimit(t *testing.T) {
	for name, sent := range map[string]properties{
		"252 properties":                    many(252, int32(1)),
		"a property name of 255 characters": {strings.Repeat("n", 255): int32(1)},
		"an entity just below 1 MiB":        many(16, strings.Repeat("x", 32000)),
		"a property name of other letters":  {"größe_数": int32(1)},
		"names that differ in case only":    {"name": "a", "Name": "b", "timestamp": "c"},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			add(t, table, entity("r", sent))
			equal(t, stored(t, table), sent)
		})
	}
}

func TestRefusedBeyondTheLimit(t *testing.T) {
	early := time.Date(1600, 12, 31, 23, 59, 59, 0, time.UTC)
	for name, one := range map[string]struct {
		values properties
		code   aztables.TableErrorCode
	}{
		"a string of more than 32 Ki characters": {properties{"s": strings.Repeat("x", 32769)}, aztables.PropertyValueTooLarge},
		"a string of more than 16 Ki emoji":      {properties{"s": strings.Repeat("😀", 16385)}, aztables.PropertyValueTooLarge},
		"a binary of more than 64 KiB":           {properties{"b": make(aztables.EDMBinary, 65537)}, aztables.PropertyValueTooLarge},
		"253 properties":                         {many(253, int32(1)), aztables.TooManyProperties},
		"a property name of 256 characters":      {properties{strings.Repeat("n", 256): int32(1)}, aztables.PropertyNameTooLong},
		"a property name with a dash":            {properties{"a-b": int32(1)}, aztables.PropertyNameInvalid},
		"an entity above 1 MiB":                  {many(17, strings.Repeat("x", 32768)), aztables.EntityTooLarge},
		"a date before 1601":                     {properties{"t": aztables.EDMDateTime(early)}, aztables.OutOfRangeInput},
		"a GUID that is none":                    {properties{"g": aztables.EDMGUID("nothing")}, aztables.InvalidInput},
		"an Int64 beyond 64 bits": {
			properties{"l": "9223372036854775808", "l@odata.type": "Edm.Int64"}, aztables.InvalidInput,
		},
		"an Int32 beyond 32 bits": {properties{"l": 2147483648, "l@odata.type": "Edm.Int32"}, aztables.InvalidInput},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			_, err := table.AddEntity(ctx, entity("r", one.values), nil)
			refused(t, err, 400, string(one.code))
			for _, mode := range bothModes {
				_, err = upsert(table, mode, one.values)
				refused(t, err, 400, string(one.code))
			}
			equal(t, len(list(t, table, nil)), 0)
		})
	}
}

func TestAWrongKeyIsAnAuthenticationFailure(t *testing.T) {
	wrong := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("wrong", 12)))
	credential, err := aztables.NewSharedKeyCredential(setting("AccountName"), wrong)
	must(t, err)
	stranger, err := aztables.NewServiceClientWithSharedKey(endpoint(), credential, clientOptions())
	must(t, err)
	_, err = stranger.CreateTable(ctx, freshName(), nil)
	refused(t, err, 403, "AuthenticationFailed", "Make sure the value of Authorization header is formed correctly")
}

func TestNoCredentialsIsNotFoundForThisVersion(t *testing.T) {
	stranger, err := aztables.NewServiceClientWithNoCredential(endpoint(), clientOptions())
	must(t, err)
	_, err = stranger.NewListTablesPager(nil).NextPage(ctx)
	refused(t, err, 404, "ResourceNotFound")
}
