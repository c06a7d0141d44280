// Service properties and statistics: stored for the account, returned as set, each part independent of the others.

package sdk

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func retention(days int32) *aztables.RetentionPolicy {
	if days < 0 {
		return &aztables.RetentionPolicy{Enabled: pointer(false)}
	}
	return &aztables.RetentionPolicy{Enabled: pointer(true), Days: &days}
}

func logging(on bool, days int32) *aztables.Logging {
	return &aztables.Logging{
		Version: pointer("1.0"), Delete: &on, Read: &on, Write: &on, RetentionPolicy: retention(days),
	}
}

func metrics(includeAPIs bool, days int32) *aztables.Metrics {
	return &aztables.Metrics{
		Version: pointer("1.0"), Enabled: pointer(true), IncludeAPIs: &includeAPIs, RetentionPolicy: retention(days),
	}
}

func noMetrics() *aztables.Metrics {
	return &aztables.Metrics{Version: pointer("1.0"), Enabled: pointer(false), RetentionPolicy: retention(-1)}
}

func corsRule(origins string) *aztables.CorsRule {
	return &aztables.CorsRule{
		AllowedOrigins: &origins, AllowedMethods: pointer("GET"), AllowedHeaders: pointer(""), ExposedHeaders: pointer(""),
		MaxAgeInSeconds: pointer(int32(0)),
	}
}

// noProperties switches everything off except CORS rules: the SDK does not send an empty list, so rules stay.
func noProperties() aztables.ServiceProperties {
	return aztables.ServiceProperties{Logging: logging(false, -1), HourMetrics: noMetrics(), MinuteMetrics: noMetrics()}
}

func setProperties(t *testing.T, wanted aztables.ServiceProperties) {
	t.Helper()
	_, err := service.SetProperties(ctx, wanted, nil)
	must(t, err)
}

func getProperties(t *testing.T) aztables.ServiceProperties {
	t.Helper()
	answer, err := service.GetProperties(ctx, nil)
	must(t, err)
	return answer.ServiceProperties
}

func TestEverythingCanBeOff(t *testing.T) {
	setProperties(t, noProperties())
	found := getProperties(t)
	equal(t, found.Logging, logging(false, -1))
	equal(t, found.HourMetrics, noMetrics())
	equal(t, found.MinuteMetrics, noMetrics())
}

func TestLoggingComesBackAsSet(t *testing.T) {
	setProperties(t, aztables.ServiceProperties{Logging: logging(true, 5)})
	equal(t, getProperties(t).Logging, logging(true, 5))
}

func TestMetricsComeBackAsSet(t *testing.T) {
	for _, includeAPIs := range []bool{true, false} {
		t.Run(fmt.Sprint(includeAPIs), func(t *testing.T) {
			setProperties(t, aztables.ServiceProperties{HourMetrics: metrics(includeAPIs, 7)})
			setProperties(t, aztables.ServiceProperties{MinuteMetrics: metrics(!includeAPIs, 8)})
			found := getProperties(t)
			equal(t, found.HourMetrics, metrics(includeAPIs, 7))
			equal(t, found.MinuteMetrics, metrics(!includeAPIs, 8))
		})
	}
}

func TestCORSRulesComeBackAsSetInOrder(t *testing.T) {
	rules := []*aztables.CorsRule{corsRule("www.xyz.com"), {
		AllowedOrigins:  pointer("http://www.fabrikam.com,http://*.contoso.com"),
		AllowedMethods:  pointer("GET,PUT,MERGE,PATCH"),
		AllowedHeaders:  pointer("x-ms-meta-target*,x-ms-meta-customheader"),
		ExposedHeaders:  pointer("x-ms-meta-data*,x-ms-meta-customheader"),
		MaxAgeInSeconds: pointer(int32(500)),
	}}
	setProperties(t, aztables.ServiceProperties{Cors: rules})
	equal(t, getProperties(t).Cors, rules)
}

func TestAPartThatIsLeftOutStays(t *testing.T) {
	setProperties(t, noProperties())
	setProperties(t, aztables.ServiceProperties{Logging: logging(true, 5)})
	setProperties(t, aztables.ServiceProperties{Cors: []*aztables.CorsRule{corsRule("*")}})
	setProperties(t, aztables.ServiceProperties{HourMetrics: metrics(true, 7)})
	equal(t, getProperties(t), aztables.ServiceProperties{
		Logging: logging(true, 5), Cors: []*aztables.CorsRule{corsRule("*")}, HourMetrics: metrics(true, 7),
		MinuteMetrics: noMetrics(),
	})
}

func TestFiveRulesAreAcceptedAndSixRefused(t *testing.T) {
	six := []*aztables.CorsRule{}
	for n := range 6 {
		six = append(six, corsRule(fmt.Sprintf("http://%d.example", n)))
	}
	setProperties(t, aztables.ServiceProperties{Cors: six[:5]})
	_, err := service.SetProperties(ctx, aztables.ServiceProperties{Cors: six}, nil)
	refused(t, err, 400, string(aztables.InvalidXmlDocument), "XML specified is not syntactically valid.")
	equal(t, getProperties(t).Cors, six[:5])
}

func TestRetentionIsOneTo365Days(t *testing.T) {
	for _, days := range []int32{1, 365} {
		setProperties(t, aztables.ServiceProperties{MinuteMetrics: metrics(true, days)})
		equal(t, getProperties(t).MinuteMetrics, metrics(true, days))
	}
	for _, days := range []int32{0, 366} {
		_, err := service.SetProperties(ctx, aztables.ServiceProperties{MinuteMetrics: metrics(true, days)}, nil)
		refused(t, err, 400, string(aztables.InvalidXmlDocument))
	}
	equal(t, getProperties(t).MinuteMetrics, metrics(true, 365))
}

// secondary is a client of the secondary. The application must name its address, because the SDK does not.
func secondary(t *testing.T) *aztables.ServiceClient {
	t.Helper()
	client, err := aztables.NewServiceClientWithSharedKey(endpoint()+"-secondary", sharedKey(t), clientOptions())
	must(t, err)
	return client
}

func TestStatisticsComeFromTheSecondaryOnly(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	found, err := secondary(t).GetStatistics(ctx, nil)
	must(t, err)
	equal(t, *found.GeoReplication.Status, aztables.GeoReplicationStatusLive)
	synced := *found.GeoReplication.LastSyncTime
	equal(t, synced.Before(before) || synced.After(time.Now()), false)
	_, err = service.GetStatistics(ctx, nil)
	refused(t, err, 400, "InvalidQueryParameterValue")
}

func TestTheSecondaryReadsButDoesNotWrite(t *testing.T) {
	_, name := tableWithEntity(t)
	other := secondary(t).NewClient(name)
	must(t, read(other))
	for verb, one := range entityVerbs {
		if one.needed != "r" {
			t.Run(verb, func(t *testing.T) {
				refused(t, one.call(other), 403, "InsufficientAccountPermissions", "Write operations are not allowed.")
			})
		}
	}
	_, err := secondary(t).SetProperties(ctx, noProperties(), nil)
	refused(t, err, 403, "InsufficientAccountPermissions")
}
