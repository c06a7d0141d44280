// Retries: the client's own policy copes with a busy server, and a retry sees what it would see with the live service.

package sdk

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const busy = `{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"The server is busy.\nRequestId:0\nTime:0"}}}`

// busyServer is the server under test behind a proxy that answers 503 to the first `times` requests. With `lost`, the
// proxy passes those on first: the server does the work, but the client does not learn of it.
func busyServer(t *testing.T, times int32, lost bool) (*aztables.ServiceClient, *atomic.Int32) {
	t.Helper()
	target, err := url.Parse(setting("TableEndpoint"))
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	var requests atomic.Int32
	stub := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if requests.Add(1) > times {
			proxy.ServeHTTP(writer, request)
			return
		}
		if lost {
			proxy.ServeHTTP(httptest.NewRecorder(), request)
		}
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusServiceUnavailable)
		_, _ = writer.Write([]byte(busy))
	}))
	t.Cleanup(stub.Close)
	options := &aztables.ClientOptions{}
	options.Retry = policy.RetryOptions{MaxRetries: 2, RetryDelay: time.Millisecond, MaxRetryDelay: 5 * time.Millisecond}
	client, err := aztables.NewServiceClientWithSharedKey(stub.URL+target.Path, sharedKey(t), options)
	must(t, err)
	return client, &requests
}

func TestAnInsertIsRetriedWhenTheServerIsBusy(t *testing.T) {
	table, name := namedTable(t)
	client, requests := busyServer(t, 1, false)
	_, err := client.NewClient(name).AddEntity(ctx, entity("r", properties{"n": int32(1)}), nil)
	must(t, err)
	equal(t, requests.Load(), int32(2))
	equal(t, stored(t, table), properties{"n": int32(1)})
}

func TestATransactionIsRetriedWhenTheServerIsBusy(t *testing.T) {
	table, name := namedTable(t)
	client, requests := busyServer(t, 2, false)
	submit(t, client.NewClient(name), actions{action(opAdd, "a", nil), action(opAdd, "b", nil)})
	equal(t, requests.Load(), int32(3))
	equal(t, len(list(t, table, nil)), 2)
}

func TestAListingIsRetriedWhenTheServerIsBusy(t *testing.T) {
	table, name := namedTable(t)
	add(t, table, entity("r", properties{"n": int32(1)}))
	client, requests := busyServer(t, 1, false)
	equal(t, list(t, client.NewClient(name), nil)[0].Properties, properties{"n": int32(1)})
	equal(t, requests.Load(), int32(2))
}

func TestAServerThatStaysBusyIsReported(t *testing.T) {
	_, name := namedTable(t)
	client, requests := busyServer(t, 100, false)
	_, err := client.NewClient(name).GetEntity(ctx, "p", "r", nil)
	refused(t, err, 503, "ServerBusy")
	equal(t, requests.Load(), int32(3))
}

func TestARetriedInsertWhoseFirstAnswerWasLostIsAConflict(t *testing.T) {
	table, name := namedTable(t)
	client, requests := busyServer(t, 1, true)
	_, err := client.NewClient(name).AddEntity(ctx, entity("r", properties{"n": int32(1)}), nil)
	refused(t, err, 409, string(aztables.EntityAlreadyExists))
	equal(t, requests.Load(), int32(2))
	equal(t, stored(t, table), properties{"n": int32(1)})
}

func TestARetriedUpsertWhoseFirstAnswerWasLostSucceeds(t *testing.T) {
	table, name := namedTable(t)
	client, _ := busyServer(t, 1, true)
	_, err := client.NewClient(name).UpsertEntity(ctx, entity("r", properties{"n": int32(1)}), nil)
	must(t, err)
	equal(t, stored(t, table), properties{"n": int32(1)})
}

func TestARefusalIsNotRetried(t *testing.T) {
	_, name := namedTable(t)
	client, requests := busyServer(t, 0, false)
	_, err := client.NewClient(name).GetEntity(ctx, "p", "missing", nil)
	notFound(t, err)
	equal(t, requests.Load(), int32(1))
}
