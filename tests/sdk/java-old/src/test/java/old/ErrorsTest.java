// Refusals as the older client reports them: status, code and message, from JSON and from XML.

package old;

import static old.Support.ACCOUNT;
import static old.Support.assertRefused;
import static old.Support.entity;
import static old.Support.newTable;
import static old.Support.refusal;
import static old.Support.withoutRetries;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.azure.storage.StorageCredentialsAccountAndKey;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.CloudTableClient;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.EntityProperty;
import com.microsoft.azure.storage.table.TableOperation;
import java.util.Date;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class ErrorsTest {
    @Test
    void aWrongKeyIsNotAuthentic() {
        String account = ACCOUNT.getCredentials().getAccountName();
        CloudTableClient other = withoutRetries(new CloudTableClient(
            ACCOUNT.getTableEndpoint(), new StorageCredentialsAccountAndKey(account, "d3Jvbmc=")));
        assertRefused(403, "AuthenticationFailed", other::listTablesSegmented);
        assertRefused(403, "AuthenticationFailed", other::downloadServiceProperties);
    }

    @Test
    void anErrorNamesTheRequest() throws Exception {
        CloudTable table = newTable();
        StorageException error = refusal(() -> table.execute(TableOperation.delete(entity("missing"))));
        assertEquals("ResourceNotFound", error.getErrorCode());
        String message = error.getExtendedErrorInformation().getErrorMessage();
        assertTrue(message.matches("(?s).*\\nRequestId:[0-9a-f-]{36}\\nTime:\\d{4}-.*"), message);
    }

    static Stream<Arguments> refused() {
        DynamicTableEntity large = entity("a");
        for (int n = 0; n < 17; n++) {
            large.getProperties().put("p" + n, new EntityProperty("x".repeat(32768)));
        }
        return Stream.of(
            Arguments.of("PropertyValueTooLarge", entity("a", "text", "x".repeat(32769))),
            Arguments.of("EntityTooLarge", large),
            Arguments.of("PropertyNameInvalid", entity("a", "a-b", 1)),
            Arguments.of("PropertyNameTooLong", entity("a", "n".repeat(256), 1)),
            Arguments.of("OutOfRangeInput", entity("a", "time", new Date(-11644473600001L))));
    }

    @ParameterizedTest
    @MethodSource
    void refused(String code, DynamicTableEntity entity) throws Exception {
        CloudTable table = newTable();
        assertRefused(400, code, () -> table.execute(TableOperation.insert(entity)));
    }
}
