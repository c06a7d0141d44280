// Shared by the tests: the older client for the server under test, fresh tables, and checks for refusals.

package old;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.azure.storage.CloudStorageAccount;
import com.microsoft.azure.storage.RetryNoRetry;
import com.microsoft.azure.storage.StorageCredentialsSharedAccessSignature;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.CloudTableClient;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.EntityProperty;
import com.microsoft.azure.storage.table.TableEntity;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableQuery;
import com.microsoft.azure.storage.table.TableResult;
import java.net.URI;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import java.util.UUID;
import org.junit.jupiter.api.function.Executable;

final class Support {
    static final String OLD_ETAG = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"";

    /** Matches any version; the client insists on some ETag for merge, replace and delete. */
    static final String ANY = "*";

    static final CloudStorageAccount ACCOUNT = account();
    static final CloudTableClient SERVICE = withoutRetries(ACCOUNT.createCloudTableClient());

    private Support() {}

    private static CloudStorageAccount account() {
        String value = System.getenv("LAZULITE_CONNECTION_STRING");
        if (value == null || value.isEmpty()) {
            throw new IllegalStateException(
                "LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it");
        }
        try {
            return CloudStorageAccount.parse(value);
        } catch (Exception wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    /** Retries would hide exactly the answers that these tests look for. */
    static CloudTableClient withoutRetries(CloudTableClient client) {
        client.getDefaultRequestOptions().setRetryPolicyFactory(new RetryNoRetry());
        return client;
    }

    static CloudTableClient withSas(String token) throws Exception {
        URI endpoint = ACCOUNT.getTableEndpoint();
        return withoutRetries(new CloudTableClient(endpoint, new StorageCredentialsSharedAccessSignature(token)));
    }

    /** A table name that no other test uses. */
    static String freshName() {
        return "t" + UUID.randomUUID().toString().replace("-", "");
    }

    /** A fresh, empty table. It is not deleted, because the server and its data last only as long as the suite. */
    static CloudTable newTable() throws Exception {
        CloudTable table = missingTable();
        table.create();
        return table;
    }

    static CloudTable missingTable() throws Exception {
        return SERVICE.getTableReference(freshName());
    }

    /** An entity in partition "p" that matches any version. */
    static DynamicTableEntity entity(String row, Object... namesAndValues) {
        return entityIn("p", row, namesAndValues);
    }

    static DynamicTableEntity entityIn(String partition, String row, Object... namesAndValues) {
        HashMap<String, EntityProperty> properties = new HashMap<>();
        for (int n = 0; n < namesAndValues.length; n += 2) {
            properties.put((String) namesAndValues[n], property(namesAndValues[n + 1]));
        }
        return new DynamicTableEntity(partition, row, ANY, properties);
    }

    static DynamicTableEntity withEtag(DynamicTableEntity entity, String etag) {
        entity.setEtag(etag);
        return entity;
    }

    private static EntityProperty property(Object value) {
        if (value instanceof EntityProperty made) return made;
        if (value instanceof String text) return new EntityProperty(text);
        if (value instanceof Integer number) return new EntityProperty(number);
        if (value instanceof Long number) return new EntityProperty(number);
        if (value instanceof Double number) return new EntityProperty(number);
        if (value instanceof Boolean truth) return new EntityProperty(truth);
        if (value instanceof Date time) return new EntityProperty(time);
        if (value instanceof UUID guid) return new EntityProperty(guid);
        if (value instanceof byte[] bytes) return new EntityProperty(bytes);
        throw new IllegalArgumentException(String.valueOf(value));
    }

    /** The entity of a row in partition "p", or null. */
    static DynamicTableEntity get(CloudTable table, String row) throws StorageException {
        return get(table, "p", row);
    }

    static DynamicTableEntity get(CloudTable table, String partition, String row) throws StorageException {
        TableResult found = table.execute(TableOperation.retrieve(partition, row, DynamicTableEntity.class));
        assertEquals(found.getResult() == null ? 404 : 200, found.getHttpStatusCode());
        return found.getResultAsType();
    }

    /** The values of an entity by name, as text. */
    static Map<String, String> values(DynamicTableEntity entity) {
        Map<String, String> found = new TreeMap<>();
        entity.getProperties().forEach((name, value) -> found.put(name, value.getValueAsString()));
        return found;
    }

    static List<DynamicTableEntity> all(CloudTable table) {
        return all(table, TableQuery.from(DynamicTableEntity.class));
    }

    static List<DynamicTableEntity> all(CloudTable table, TableQuery<DynamicTableEntity> query) {
        List<DynamicTableEntity> found = new ArrayList<>();
        table.execute(query).forEach(found::add);
        return found;
    }

    static List<String> keys(List<? extends TableEntity> entities) {
        return entities.stream().map(entity -> entity.getPartitionKey() + entity.getRowKey()).toList();
    }

    /** Everything in a table with ETags, which a rollback must leave unchanged. */
    static Map<String, Map<String, String>> contents(CloudTable table) {
        Map<String, Map<String, String>> rows = new TreeMap<>();
        for (DynamicTableEntity entity : all(table)) {
            Map<String, String> values = values(entity);
            values.put("etag", entity.getEtag());
            rows.put(entity.getRowKey(), values);
        }
        return rows;
    }

    /** Expects the service's refusal with this status and code, and a message that contains the text. */
    static void assertRefused(int status, String code, String message, Executable work) {
        assertRefused(status, code, work);
        String found = refusal(work).getExtendedErrorInformation().getErrorMessage();
        assertTrue(found.contains(message), found);
    }

    static void assertRefused(int status, String code, Executable work) {
        StorageException error = refusal(work);
        assertEquals(code, error.getErrorCode(), error.getMessage());
        assertEquals(status, error.getHttpStatusCode(), error.getMessage());
    }

    /**
     * Expects a refused retrieval. The client looks for its code in a header only, which the service does not send with
     * an error in JSON, so only the status is left.
     */
    static void assertRetrievalRefused(int status, CloudTable table, String row) {
        assertEquals(status, refusal(() -> get(table, row)).getHttpStatusCode());
    }

    /** The refusal itself. A listing wraps it. */
    static StorageException refusal(Executable work) {
        Exception error = assertThrows(Exception.class, work);
        if (error instanceof NoSuchElementException && error.getCause() instanceof StorageException inside) {
            return inside;
        }
        if (error instanceof StorageException refusal) {
            return refusal;
        }
        throw new AssertionError(error);
    }
}
