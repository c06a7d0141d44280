// Properties and statistics of the Queue service: each part independent of the others.

package sdk

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
)

func queueRule(origins string) *azqueue.CORSRule {
	return &azqueue.CORSRule{
		AllowedOrigins: &origins, AllowedMethods: pointer("GET,PUT"), AllowedHeaders: pointer("x-ms-meta-*"),
		ExposedHeaders: pointer("x-ms-*"), MaxAgeInSeconds: pointer(int32(500)),
	}
}

func setQueueProperties(t *testing.T, options *azqueue.SetPropertiesOptions) error {
	t.Helper()
	_, err := queueService(t).SetProperties(ctx, options)
	return err
}

func readQueueProperties(t *testing.T) azqueue.StorageServiceProperties {
	t.Helper()
	answer, err := queueService(t).GetServiceProperties(ctx, nil)
	must(t, err)
	return answer.StorageServiceProperties
}

func TestQueuePropertiesComeBackAsSet(t *testing.T) {
	days := &azqueue.RetentionPolicy{Enabled: pointer(true), Days: pointer(int32(5))}
	logging := &azqueue.Logging{
		Version: pointer("1.0"), Read: pointer(true), Write: pointer(false), Delete: pointer(true), RetentionPolicy: days,
	}
	metrics := func(includeAPIs bool) *azqueue.Metrics {
		return &azqueue.Metrics{
			Version: pointer("1.0"), Enabled: pointer(true), IncludeAPIs: &includeAPIs, RetentionPolicy: days,
		}
	}
	rules := []*azqueue.CORSRule{queueRule("http://www.contoso.com"), queueRule("*")}
	must(t, setQueueProperties(t, &azqueue.SetPropertiesOptions{
		Logging: logging, HourMetrics: metrics(true), MinuteMetrics: metrics(false), CORS: rules,
	}))
	found := readQueueProperties(t)
	equal(t, found.Logging, logging)
	equal(t, found.HourMetrics, metrics(true))
	equal(t, found.MinuteMetrics, metrics(false))
	equal(t, found.CORS, rules)

	// A part that is left out stays.
	off := &azqueue.RetentionPolicy{Enabled: pointer(false)}
	must(t, setQueueProperties(t, &azqueue.SetPropertiesOptions{
		HourMetrics: &azqueue.Metrics{Enabled: pointer(false), RetentionPolicy: off},
	}))
	found = readQueueProperties(t)
	equal(t, *found.HourMetrics.Enabled, false)
	equal(t, found.Logging, logging)
	equal(t, found.CORS, rules)
}

func TestQueuePropertiesThatAreRefused(t *testing.T) {
	rules := []*azqueue.CORSRule{}
	for n := range 6 {
		rules = append(rules, queueRule(fmt.Sprintf("http://%d.example", n)))
	}
	must(t, setQueueProperties(t, &azqueue.SetPropertiesOptions{CORS: rules[:5]}))
	refused(t, setQueueProperties(t, &azqueue.SetPropertiesOptions{CORS: rules}), 400, "InvalidXmlDocument")
	for _, days := range []int32{0, 366} {
		retention := &azqueue.RetentionPolicy{Enabled: pointer(true), Days: &days}
		metrics := &azqueue.Metrics{Enabled: pointer(true), IncludeAPIs: pointer(true), RetentionPolicy: retention}
		refused(t, setQueueProperties(t, &azqueue.SetPropertiesOptions{MinuteMetrics: metrics}), 400, "InvalidXmlDocument")
	}
	equal(t, readQueueProperties(t).CORS, rules[:5])
}

func TestStatisticsOfQueuesComeFromTheSecondary(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	answer, err := secondaryQueues(t).GetStatistics(ctx, nil)
	must(t, err)
	equal(t, string(*answer.GeoReplication.Status), "live")
	if synced := *answer.GeoReplication.LastSyncTime; synced.Before(before) || synced.After(time.Now()) {
		t.Fatalf("the last sync was at %v", synced)
	}
	_, err = queueService(t).GetStatistics(ctx, nil)
	refused(t, err, 400, "InvalidQueryParameterValue")
}

func TestTheSecondaryReadsQueuesButDoesNotWrite(t *testing.T) {
	queue, name := namedQueue(t)
	send(t, queue, "text")
	other := secondaryQueues(t).NewQueueClient(name)
	equal(t, peekTexts(t, other), []string{"text"})
	_, err := other.EnqueueMessage(ctx, "more", nil)
	refused(t, err, 403, "InsufficientAccountPermissions")
	_, err = other.DequeueMessage(ctx, nil)
	refused(t, err, 403, "InsufficientAccountPermissions")
	equal(t, messageCount(t, other), int32(1))
}
