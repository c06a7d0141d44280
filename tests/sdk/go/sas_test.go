// Shared access signatures from the SDK's own generators: what each field allows and refuses.

package sdk

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	permissionMismatch   = "AuthorizationPermissionMismatch"
	resourceTypeMismatch = "AuthorizationResourceTypeMismatch"
	outOfScope           = "AuthorizationFailure"
	badSignature         = "AuthenticationFailed"
)

// fromNow is a time in whole seconds, because signatures and policies have no fractions.
func fromNow(hours int) time.Time {
	return time.Now().UTC().Truncate(time.Second).Add(time.Duration(hours) * time.Hour)
}

// holder is a client of the whole service whose only credential is a signature.
func holder(t *testing.T, token string) *aztables.ServiceClient {
	t.Helper()
	client, err := aztables.NewServiceClientWithNoCredential(endpoint()+"/?"+token, clientOptions())
	must(t, err)
	return client
}

// accountSAS is an account token for all table resources, valid for an hour, after `change` has adjusted it.
func accountSAS(t *testing.T, letters string, change func(*aztables.AccountSASSignatureValues)) string {
	t.Helper()
	values := aztables.AccountSASSignatureValues{
		Permissions: letters, Services: "t", ResourceTypes: "sco", ExpiryTime: fromNow(1),
	}
	if change != nil {
		change(&values)
	}
	token, err := values.Sign(sharedKey(t))
	must(t, err)
	return token.Encode()
}

// tableSAS is a token for a table, valid for an hour, after `change` has adjusted it. The SDK signs a key range but
// leaves it out of the token, so it is added here.
func tableSAS(t *testing.T, name, letters string, change func(*aztables.SASSignatureValues)) string {
	t.Helper()
	values := aztables.SASSignatureValues{TableName: name, Permissions: letters, ExpiryTime: fromNow(1)}
	if change != nil {
		change(&values)
	}
	token, err := values.Sign(sharedKey(t))
	must(t, err)
	for parameter, value := range map[string]string{
		"spk": values.StartPartitionKey, "srk": values.StartRowKey, "epk": values.EndPartitionKey, "erk": values.EndRowKey,
	} {
		if value != "" {
			token += "&" + parameter + "=" + url.QueryEscape(value)
		}
	}
	return token
}

// tableWithEntity is a table with one entity, and its name.
func tableWithEntity(t *testing.T) (*aztables.Client, string) {
	t.Helper()
	table, name := namedTable(t)
	add(t, table, entity("r", properties{"n": int32(1)}))
	return table, name
}

func read(table *aztables.Client) error {
	_, err := table.GetEntity(ctx, "p", "r", nil)
	return err
}

// entityVerbs are the verbs on an entity, each with the permission letters it needs.
var entityVerbs = map[string]struct {
	needed string
	call   func(table *aztables.Client) error
}{
	"get":  {"r", read},
	"list": {"r", func(table *aztables.Client) error { _, err := tryList(table, nil); return err }},
	"add": {"a", func(table *aztables.Client) error {
		_, err := table.AddEntity(ctx, entity("new", nil), nil)
		return err
	}},
	"update": {"u", func(table *aztables.Client) error {
		_, err := update(table, aztables.UpdateModeMerge, nil, properties{"n": int32(2)})
		return err
	}},
	"upsert": {"au", func(table *aztables.Client) error {
		_, err := upsert(table, aztables.UpdateModeReplace, properties{"n": int32(3)})
		return err
	}},
	"delete": {"d", func(table *aztables.Client) error { _, err := table.DeleteEntity(ctx, "p", "r", nil); return err }},
}

// outcome expects success, or this refusal.
func outcome(t *testing.T, err error, allowed bool, code string) {
	t.Helper()
	if allowed {
		must(t, err)
	} else {
		refused(t, err, 403, code)
	}
}

func holdsAll(granted, needed string) bool {
	for _, letter := range needed {
		if !strings.ContainsRune(granted, letter) {
			return false
		}
	}
	return true
}

func TestSPAllowsItsVerbsAndNoOthers(t *testing.T) {
	for _, granted := range []string{"r", "a", "u", "d", "au", "raud"} {
		for verb, one := range entityVerbs {
			t.Run("table "+granted+" "+verb, func(t *testing.T) {
				_, name := tableWithEntity(t)
				client := holder(t, tableSAS(t, name, granted, nil)).NewClient(name)
				outcome(t, one.call(client), holdsAll(granted, one.needed), permissionMismatch)
			})
			t.Run("account "+granted+" "+verb, func(t *testing.T) {
				_, name := tableWithEntity(t)
				client := holder(t, accountSAS(t, granted, nil)).NewClient(name)
				outcome(t, one.call(client), holdsAll(granted, one.needed), permissionMismatch)
			})
		}
	}
}

// serviceVerbs are operations on tables and on the service, each with the resource type it needs and the letters, any
// one of which is enough.
var serviceVerbs = map[string]struct {
	resourceType, anyOf string
	call                func(client *aztables.ServiceClient) error
}{
	"list tables": {"c", "l", func(client *aztables.ServiceClient) error {
		_, err := client.NewListTablesPager(nil).NextPage(ctx)
		return err
	}},
	"create table": {"c", "cw", func(client *aztables.ServiceClient) error {
		_, err := client.CreateTable(ctx, freshName(), nil)
		return err
	}},
	"get properties": {"s", "r", func(client *aztables.ServiceClient) error {
		_, err := client.GetProperties(ctx, nil)
		return err
	}},
	"set properties": {"s", "w", func(client *aztables.ServiceClient) error {
		_, err := client.SetProperties(ctx, noProperties(), nil)
		return err
	}},
}

func TestSPAndSRTOnTheServiceAndItsTables(t *testing.T) {
	for verb, one := range serviceVerbs {
		for _, letter := range []string{"r", "w", "d", "l", "a", "c", "u"} {
			t.Run("sp "+letter+" "+verb, func(t *testing.T) {
				client := holder(t, accountSAS(t, letter, nil))
				outcome(t, one.call(client), strings.Contains(one.anyOf, letter), permissionMismatch)
			})
		}
		for _, letter := range []string{"s", "c", "o"} {
			t.Run("srt "+letter+" "+verb, func(t *testing.T) {
				client := holder(t, accountSAS(t, "rwdlacu", func(values *aztables.AccountSASSignatureValues) {
					values.ResourceTypes = letter
				}))
				outcome(t, one.call(client), letter == one.resourceType, resourceTypeMismatch)
			})
		}
	}
}

func TestSRTOfEntitiesIsObject(t *testing.T) {
	for _, letter := range []string{"s", "c", "o"} {
		for verb, one := range entityVerbs {
			t.Run(letter+" "+verb, func(t *testing.T) {
				_, name := tableWithEntity(t)
				client := holder(t, accountSAS(t, "rwdlacu", func(values *aztables.AccountSASSignatureValues) {
					values.ResourceTypes = letter
				})).NewClient(name)
				outcome(t, one.call(client), letter == "o", resourceTypeMismatch)
			})
		}
	}
}

func TestDeletingATableNeedsDAndC(t *testing.T) {
	name := freshName()
	_, err := service.CreateTable(ctx, name, nil)
	must(t, err)
	remove := func(letters, types string) error {
		token := accountSAS(t, letters, func(values *aztables.AccountSASSignatureValues) { values.ResourceTypes = types })
		_, err := holder(t, token).DeleteTable(ctx, name, nil)
		return err
	}
	refused(t, remove("rwlacu", "sco"), 403, permissionMismatch)
	refused(t, remove("d", "so"), 403, resourceTypeMismatch)
	must(t, remove("d", "c"))
	_, err = service.DeleteTable(ctx, name, nil)
	notFound(t, err)
}

func TestSSMustNameTables(t *testing.T) {
	_, name := tableWithEntity(t)
	for services, allowed := range map[string]bool{"b": false, "qf": false, "t": true, "bqtf": true} {
		t.Run(services, func(t *testing.T) {
			token := accountSAS(t, "r", func(values *aztables.AccountSASSignatureValues) { values.Services = services })
			outcome(t, read(holder(t, token).NewClient(name)), allowed, "AuthorizationServiceMismatch")
		})
	}
}

func TestTheBoundsOfASignature(t *testing.T) {
	_, name := tableWithEntity(t)
	ip := func(start, end string) aztables.IPRange {
		return aztables.IPRange{Start: net.ParseIP(start), End: net.ParseIP(end)}
	}
	for field, one := range map[string]struct {
		start, expiry time.Time
		addresses     aztables.IPRange
		protocol      aztables.SASProtocol
		refusal       string
	}{
		"st in the past":             {start: fromNow(-1)},
		"st in the future":           {start: fromNow(1), expiry: fromNow(2), refusal: badSignature},
		"se in the past":             {expiry: fromNow(-1), refusal: badSignature},
		"sip of this address":        {addresses: ip("127.0.0.1", "")},
		"sip of a range":             {addresses: ip("127.0.0.0", "127.0.0.255")},
		"sip of another address":     {addresses: ip("10.0.0.1", ""), refusal: "AuthorizationSourceIPMismatch"},
		"sip of another range":       {addresses: ip("127.0.0.2", "127.0.0.9"), refusal: "AuthorizationSourceIPMismatch"},
		"spr of both protocols":      {protocol: aztables.SASProtocolHTTPSandHTTP},
		"spr of https alone by http": {protocol: aztables.SASProtocolHTTPS, refusal: "AuthorizationProtocolMismatch"},
	} {
		if one.expiry.IsZero() {
			one.expiry = fromNow(1)
		}
		t.Run("account "+field, func(t *testing.T) {
			token := accountSAS(t, "r", func(values *aztables.AccountSASSignatureValues) {
				values.StartTime, values.ExpiryTime = one.start, one.expiry
				values.IPRange, values.Protocol = one.addresses, one.protocol
			})
			outcome(t, read(holder(t, token).NewClient(name)), one.refusal == "", one.refusal)
		})
		t.Run("table "+field, func(t *testing.T) {
			token := tableSAS(t, name, "r", func(values *aztables.SASSignatureValues) {
				values.StartTime, values.ExpiryTime = one.start, one.expiry
				values.IPRange, values.Protocol = one.addresses, one.protocol
			})
			outcome(t, read(holder(t, token).NewClient(name)), one.refusal == "", one.refusal)
		})
	}
}

func TestTheAccountSASURLOfAServiceClientIsForHTTPSOnly(t *testing.T) {
	types := aztables.AccountSASResourceTypes{Service: true, Container: true, Object: true}
	link, err := service.GetAccountSASURL(types, aztables.AccountSASPermissions{List: true}, fromNow(-1), fromNow(1))
	must(t, err)
	client, err := aztables.NewServiceClientWithNoCredential(link, clientOptions())
	must(t, err)
	_, err = client.NewListTablesPager(nil).NextPage(ctx)
	refused(t, err, 403, "AuthorizationProtocolMismatch")
}

func TestAVersionOfASignatureIsUsedToReadIt(t *testing.T) {
	_, name := tableWithEntity(t)
	for _, version := range []string{"2015-04-05", "2018-11-09", "2019-02-02"} {
		t.Run(version, func(t *testing.T) {
			token := tableSAS(t, name, "r", func(values *aztables.SASSignatureValues) { values.Version = version })
			must(t, read(holder(t, token).NewClient(name)))
			token = accountSAS(t, "r", func(values *aztables.AccountSASSignatureValues) { values.Version = version })
			must(t, read(holder(t, token).NewClient(name)))
		})
	}
	// From 2020-12-06 on an account's string-to-sign has one more line, which this SDK does not write.
	token := accountSAS(t, "r", func(values *aztables.AccountSASSignatureValues) { values.Version = "2020-12-06" })
	refused(t, read(holder(t, token).NewClient(name)), 403, badSignature)
}

func TestTheSignatureOfAnotherKeyIsRefused(t *testing.T) {
	_, name := tableWithEntity(t)
	wrong, err := aztables.NewSharedKeyCredential(setting("AccountName"), "d3Jvbmc=")
	must(t, err)
	token, err := aztables.SASSignatureValues{TableName: name, Permissions: "r", ExpiryTime: fromNow(1)}.Sign(wrong)
	must(t, err)
	refused(t, read(holder(t, token).NewClient(name)), 403, badSignature)
}

func TestAFieldThatWasChangedAfterSigningIsRefused(t *testing.T) {
	table, name := tableWithEntity(t)
	token := strings.Replace(tableSAS(t, name, "r", nil), "sp=r", "sp=raud", 1)
	_, err := holder(t, token).NewClient(name).DeleteEntity(ctx, "p", "r", nil)
	refused(t, err, 403, badSignature)
	must(t, read(table))
}

func TestTNIsTheTableAndNoOther(t *testing.T) {
	_, name := tableWithEntity(t)
	token := tableSAS(t, name, "raud", nil)
	must(t, read(holder(t, token).NewClient(strings.ToUpper(name))))
	other := holder(t, tableSAS(t, "another", "raud", nil)).NewClient(name)
	for verb, one := range entityVerbs {
		t.Run(verb, func(t *testing.T) { refused(t, one.call(other), 403, outOfScope) })
	}
}

func TestATableSASIsForEntitiesOnly(t *testing.T) {
	_, name := tableWithEntity(t)
	client := holder(t, tableSAS(t, name, "raud", nil))
	for verb, one := range serviceVerbs {
		t.Run(verb, func(t *testing.T) { refused(t, one.call(client), 403, outOfScope) })
	}
	_, err := client.DeleteTable(ctx, name, nil)
	refused(t, err, 403, outOfScope)
}

func TestNoSASIsForAccessPolicies(t *testing.T) {
	_, name := tableWithEntity(t)
	for kind, token := range map[string]string{
		"account": accountSAS(t, "rwdlacu", nil), "table": tableSAS(t, name, "raud", nil),
	} {
		t.Run(kind, func(t *testing.T) {
			client := holder(t, token).NewClient(name)
			_, err := client.GetAccessPolicy(ctx, nil)
			refused(t, err, 403, outOfScope)
			_, err = client.SetAccessPolicy(ctx, nil)
			refused(t, err, 403, outOfScope)
		})
	}
}

func TestARangeBoundsQueriesAndWrites(t *testing.T) {
	for _, one := range []aztables.SASSignatureValues{
		{StartPartitionKey: "b"},
		{StartPartitionKey: "b", StartRowKey: "2"},
		{EndPartitionKey: "b"},
		{EndPartitionKey: "b", EndRowKey: "1"},
		{StartPartitionKey: "a", StartRowKey: "3", EndPartitionKey: "c", EndRowKey: "0"},
		{StartPartitionKey: "b", StartRowKey: "2", EndPartitionKey: "b", EndRowKey: "2"},
	} {
		low, high := one.StartPartitionKey+one.StartRowKey, one.EndPartitionKey+one.EndRowKey
		t.Run("from "+low+" to "+high, func(t *testing.T) {
			table, name := namedTable(t)
			client := holder(t, tableSAS(t, name, "raud", func(values *aztables.SASSignatureValues) {
				values.StartPartitionKey, values.StartRowKey = one.StartPartitionKey, one.StartRowKey
				values.EndPartitionKey, values.EndRowKey = one.EndPartitionKey, one.EndRowKey
			})).NewClient(name)
			inside := []string{}
			for _, partition := range []string{"a", "b", "c"} {
				for _, row := range []string{"0", "1", "2", "3"} {
					add(t, table, entityIn(partition, row, nil))
					key := partition + row
					allowed := key >= low && (high == "" || key <= high || one.EndRowKey == "" && partition == one.EndPartitionKey)
					if allowed {
						inside = append(inside, partition+"/"+row)
					}
					// What is outside does not exist for a reader.
					_, err := client.GetEntity(ctx, partition, row, nil)
					if allowed {
						must(t, err)
					} else {
						refused(t, err, 404, string(aztables.ResourceNotFound))
					}
					_, err = client.UpsertEntity(ctx, entityIn(partition, row, nil), nil)
					outcome(t, err, allowed, outOfScope)
					_, err = client.UpdateEntity(ctx, entityIn(partition, row, properties{"n": int32(1)}), nil)
					outcome(t, err, allowed, outOfScope)
				}
			}
			equal(t, join(readPages(t, client, aztables.ListEntitiesOptions{})), inside)
			equal(t, join(readPages(t, client, aztables.ListEntitiesOptions{Top: pointer(int32(1))})), inside)
			equal(t, join(readPages(t, table, aztables.ListEntitiesOptions{Filter: pointer("n eq 1")})), inside)
		})
	}
}

func TestATransactionNeedsEveryLetterAndEveryKey(t *testing.T) {
	table, name := tableWithEntity(t)
	add(t, table, entity("gone", nil))
	all := actions{
		action(opAdd, "a", nil), action(opUpdateMerge, "r", properties{"n": int32(2)}), action(opDelete, "gone", nil),
	}
	for granted, index := range map[string]int{"ud": 0, "ad": 1, "au": 2} {
		_, err := holder(t, tableSAS(t, name, granted, nil)).NewClient(name).SubmitTransaction(ctx, all, nil)
		foundIndex, status, code := failedPart(t, err)
		equal(t, []any{foundIndex, status, code}, []any{index, 403, permissionMismatch})
	}
	narrow := tableSAS(t, name, "raud", func(values *aztables.SASSignatureValues) {
		values.StartPartitionKey, values.StartRowKey = "p", "b"
	})
	_, err := holder(t, narrow).NewClient(name).SubmitTransaction(ctx, actions{all[1], all[2], all[0]}, nil)
	index, status, code := failedPart(t, err)
	equal(t, []any{index, status, code}, []any{2, 403, outOfScope})
	equal(t, len(list(t, table, nil)), 2)
	submit(t, holder(t, tableSAS(t, name, "aud", nil)).NewClient(name), all)
	equal(t, withoutETags(contents(t, table)), map[string]properties{"a": {}, "r": {"n": int32(2)}})
}

// policyToken is a token that names the stored policy "reader" and carries the fields that are not zero.
func policyToken(t *testing.T, name, letters string, expiry time.Time) string {
	t.Helper()
	values := aztables.SASSignatureValues{
		TableName: name, Permissions: letters, ExpiryTime: expiry, Identifier: "reader",
	}
	token, err := values.Sign(sharedKey(t))
	must(t, err)
	return token
}

func setPolicy(t *testing.T, table *aztables.Client, policy aztables.AccessPolicy) {
	t.Helper()
	identifiers := []*aztables.SignedIdentifier{{ID: pointer("reader"), AccessPolicy: &policy}}
	_, err := table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: identifiers})
	must(t, err)
}

func TestSIAndTheTokenCompleteEachOther(t *testing.T) {
	table, name := tableWithEntity(t)
	never := time.Time{}
	attempt := func(letters string, expiry time.Time) error {
		return read(holder(t, policyToken(t, name, letters, expiry)).NewClient(name))
	}
	refused(t, attempt("r", fromNow(1)), 403, badSignature) // There is no such policy yet.
	setPolicy(t, table, aztables.AccessPolicy{Start: pointer(fromNow(-1)), Expiry: pointer(fromNow(1)), Permission: pointer("r")})
	must(t, attempt("", never))
	setPolicy(t, table, aztables.AccessPolicy{Permission: pointer("r")})
	must(t, attempt("", fromNow(1)))
	refused(t, attempt("", never), 403, badSignature)
	setPolicy(t, table, aztables.AccessPolicy{Expiry: pointer(fromNow(1))})
	must(t, attempt("r", never))
	refused(t, attempt("", never), 403, badSignature)
}

func TestChangingThePolicyChangesTheTokensThatNameIt(t *testing.T) {
	table, name := tableWithEntity(t)
	setPolicy(t, table, aztables.AccessPolicy{Expiry: pointer(fromNow(1)), Permission: pointer("r")})
	client := holder(t, policyToken(t, name, "", time.Time{})).NewClient(name)
	must(t, read(client))
	refused(t, entityVerbs["add"].call(client), 403, permissionMismatch)
	setPolicy(t, table, aztables.AccessPolicy{Expiry: pointer(fromNow(1)), Permission: pointer("a")})
	refused(t, read(client), 403, permissionMismatch)
	must(t, entityVerbs["add"].call(client))
	setPolicy(t, table, aztables.AccessPolicy{Expiry: pointer(fromNow(-1)), Permission: pointer("r")})
	refused(t, read(client), 403, badSignature)
	setPolicy(t, table, aztables.AccessPolicy{Start: pointer(fromNow(1)), Expiry: pointer(fromNow(2)), Permission: pointer("r")})
	refused(t, read(client), 403, badSignature)
	_, err := table.SetAccessPolicy(ctx, nil)
	must(t, err)
	refused(t, read(client), 403, badSignature)
}

func TestASignatureAndConditionsWorkTogether(t *testing.T) {
	table, name := tableWithEntity(t)
	client := holder(t, tableSAS(t, name, "raud", nil)).NewClient(name)
	stale := azcore.ETag(get(t, client, "p", "r").ETag)
	_, err := update(table, aztables.UpdateModeMerge, nil, properties{"n": int32(2)})
	must(t, err)
	_, err = update(client, aztables.UpdateModeMerge, &stale, properties{"n": int32(3)})
	notSatisfied(t, err)
	equal(t, fmt.Sprint(stored(t, client)), "map[n:2]")
}
