// Shared by the tests: clients for the server under test, fresh tables, and checks for refusals.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.http.rest.Response;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableServiceException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.function.Executable;

final class Support {
    static final String CONNECTION_STRING = connectionString();

    /** No retries: they would hide exactly the answers that these tests look for. */
    static final RetryOptions NO_RETRIES = new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1)));

    static final TableServiceClient SERVICE = builder().connectionString(CONNECTION_STRING).buildClient();

    private Support() {}

    private static String connectionString() {
        String value = System.getenv("LAZULITE_CONNECTION_STRING");
        if (value == null || value.isEmpty()) {
            throw new IllegalStateException(
                "LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it");
        }
        return value;
    }

    static TableServiceClientBuilder builder() {
        return new TableServiceClientBuilder().retryOptions(NO_RETRIES);
    }

    /** One value of the connection string. */
    static String setting(String name) {
        for (String part : CONNECTION_STRING.split(";")) {
            if (part.startsWith(name + "=")) {
                return part.substring(name.length() + 1);
            }
        }
        throw new IllegalStateException("the connection string has no " + name);
    }

    /** A table name that no other test uses. */
    static String freshName() {
        return "t" + UUID.randomUUID().toString().replace("-", "");
    }

    /** A fresh, empty table. It is not deleted, because the server and its data last only as long as the suite. */
    static TableClient newTable() {
        return SERVICE.createTable(freshName());
    }

    static TableEntity entity(String partition, String row, Object... namesAndValues) {
        TableEntity entity = new TableEntity(partition, row);
        for (int n = 0; n < namesAndValues.length; n += 2) {
            entity.addProperty((String) namesAndValues[n], namesAndValues[n + 1]);
        }
        return entity;
    }

    /** An entity for row "r" in partition "p". */
    static TableEntity one(Object... namesAndValues) {
        return entity("p", "r", namesAndValues);
    }

    /** The properties of row "r" in partition "p", without keys and the server's additions. */
    static Map<String, Object> stored(TableClient table) {
        return plain(table.getEntity("p", "r"));
    }

    static Map<String, Object> plain(TableEntity entity) {
        Map<String, Object> properties = new HashMap<>(entity.getProperties());
        // The SDK asks for full metadata and leaves it in the entity.
        properties.keySet().removeIf(name -> name.startsWith("odata.") || name.endsWith("@odata.type"));
        List.of("PartitionKey", "RowKey", "Timestamp").forEach(properties::remove);
        return properties;
    }

    static List<TableEntity> all(TableClient table) {
        return table.listEntities().stream().toList();
    }

    static List<TableEntity> query(TableClient table, String filter) {
        return query(table, new ListEntitiesOptions().setFilter(filter));
    }

    static List<TableEntity> query(TableClient table, ListEntitiesOptions options) {
        return table.listEntities(options, null, Context.NONE).stream().toList();
    }

    /** The etag of an answer without a body. The SDK cuts the closing quote from the header. */
    static String etag(Response<Void> response) {
        return response.getHeaders().getValue(HttpHeaderName.ETAG) + '"';
    }

    /** Expects the service's refusal with this status and this code. */
    static HttpResponseException assertRefused(int status, String code, Executable call) {
        HttpResponseException refusal = assertThrows(HttpResponseException.class, call);
        assertEquals(status, refusal.getResponse().getStatusCode(), refusal.getMessage());
        if (refusal instanceof TableServiceException explained) {
            assertEquals(code, explained.getValue().getErrorCode().toString(), refusal.getMessage());
        } else {
            // Listings and XML resources fail with another exception, whose message contains the body of the answer.
            String text = refusal.getMessage();
            assertTrue(text.contains("\"code\":\"" + code + "\"") || text.contains("<m:code>" + code + "</m:code>"), text);
        }
        return refusal;
    }

    static void assertRefused(int status, String code, String message, Executable call) {
        String text = assertRefused(status, code, call).getMessage();
        assertTrue(text.contains(message), () -> "'" + text + "' does not say '" + message + "'");
    }

    static void assertNotFound(Executable call) {
        assertRefused(404, "ResourceNotFound", "The specified resource does not exist.", call);
    }

    static void assertNotSatisfied(Executable call) {
        assertRefused(412, "UpdateConditionNotSatisfied",
            "The update condition specified in the request was not satisfied.", call);
    }
}
