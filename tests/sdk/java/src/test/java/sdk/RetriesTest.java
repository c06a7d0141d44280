// Retries: the client's own policy copes with a busy server, and a retry sees what it would see with the live service.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static sdk.Support.all;
import static sdk.Support.assertNotFound;
import static sdk.Support.assertRefused;
import static sdk.Support.entity;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.setting;
import static sdk.Support.stored;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RetriesTest {
    private static final byte[] BUSY = ("{\"odata.error\":{\"code\":\"ServerBusy\",\"message\":{\"lang\":\"en-US\","
        + "\"value\":\"The server is busy.\\nRequestId:0\\nTime:0\"}}}").getBytes(StandardCharsets.UTF_8);
    /** Headers that belong to a connection, not to a request. */
    private static final Set<String> NOT_FORWARDED = Set.of("host", "content-length", "connection", "transfer-encoding");

    private final TableClient table = newTable();
    private final AtomicInteger requests = new AtomicInteger();
    private final HttpClient forwarder = HttpClient.newHttpClient();
    private HttpServer stub;

    @AfterEach
    void stop() {
        stub.stop(0);
    }

    /**
     * The table behind a proxy that answers 503 to the first `times` requests. With `lost`, the proxy passes those on
     * first: the server does the work, but the client does not learn of it.
     */
    private TableClient behindBusyServer(int times, boolean lost) throws IOException {
        URI target = URI.create(setting("TableEndpoint"));
        stub = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        stub.createContext("/", exchange -> {
            boolean busy = requests.incrementAndGet() <= times;
            HttpResponse<byte[]> answer = busy && !lost ? null : forward(exchange, target);
            exchange.getResponseHeaders().add("Content-Type", "application/json");
            if (!busy) {
                answer.headers().map().forEach((name, values) -> {
                    if (!NOT_FORWARDED.contains(name.toLowerCase())) {
                        exchange.getResponseHeaders().put(name, values);
                    }
                });
            }
            byte[] body = busy ? BUSY : answer.body();
            exchange.sendResponseHeaders(busy ? 503 : answer.statusCode(), body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        stub.start();
        return new TableServiceClientBuilder()
            .endpoint("http://127.0.0.1:" + stub.getAddress().getPort() + target.getPath())
            .credential(new AzureNamedKeyCredential(setting("AccountName"), setting("AccountKey")))
            .retryOptions(new RetryOptions(new FixedDelayOptions(2, Duration.ofMillis(1))))
            .buildClient().getTableClient(table.getTableName());
    }

    private HttpResponse<byte[]> forward(HttpExchange exchange, URI target) throws IOException {
        URI uri = URI.create("http://" + target.getAuthority() + exchange.getRequestURI().toString());
        byte[] body = exchange.getRequestBody().readAllBytes();
        HttpRequest.Builder request = HttpRequest.newBuilder(uri)
            .method(exchange.getRequestMethod(), HttpRequest.BodyPublishers.ofByteArray(body));
        exchange.getRequestHeaders().forEach((name, values) -> {
            if (!NOT_FORWARDED.contains(name.toLowerCase())) {
                values.forEach(value -> request.header(name, value));
            }
        });
        try {
            return forwarder.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
        } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
        }
    }

    @Test
    void anInsertIsRetriedWhenTheServerIsBusy() throws IOException {
        behindBusyServer(1, false).createEntity(one("n", 1));
        assertEquals(2, requests.get());
        assertEquals(Map.of("n", 1), stored(table));
    }

    @Test
    void aTransactionIsRetriedWhenTheServerIsBusy() throws IOException {
        behindBusyServer(2, false).submitTransaction(List.of(
            new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "a")),
            new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "b"))));
        assertEquals(3, requests.get());
        assertEquals(2, all(table).size());
    }

    @Test
    void aListingIsRetriedWhenTheServerIsBusy() throws IOException {
        table.createEntity(one("n", 1));
        assertEquals(1, all(behindBusyServer(1, false)).size());
        assertEquals(2, requests.get());
    }

    @Test
    void aServerThatStaysBusyIsReported() throws IOException {
        TableClient client = behindBusyServer(100, false);
        assertRefused(503, "ServerBusy", () -> client.getEntity("p", "r"));
        assertEquals(3, requests.get());
    }

    @Test
    void aRetriedInsertWhoseFirstAnswerWasLostIsAConflict() throws IOException {
        TableClient client = behindBusyServer(1, true);
        assertRefused(409, "EntityAlreadyExists", () -> client.createEntity(one("n", 1)));
        assertEquals(2, requests.get());
        assertEquals(Map.of("n", 1), stored(table));
    }

    @Test
    void aRetriedUpsertWhoseFirstAnswerWasLostSucceeds() throws IOException {
        behindBusyServer(1, true).upsertEntity(one("n", 1));
        assertEquals(2, requests.get());
        assertEquals(Map.of("n", 1), stored(table));
    }

    @Test
    void aRefusalIsNotRetried() throws IOException {
        TableClient client = behindBusyServer(0, false);
        assertNotFound(() -> client.getEntity("p", "missing"));
        assertEquals(1, requests.get());
    }
}
