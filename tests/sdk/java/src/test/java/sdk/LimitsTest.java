// Limits: the largest accepted, the smallest refused, and requests without valid credentials.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.params.provider.Arguments.argumentSet;
import static sdk.Support.all;
import static sdk.Support.assertRefused;
import static sdk.Support.builder;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.setting;
import static sdk.Support.stored;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

class LimitsTest {
    private final TableClient table = newTable();

    private static Map<String, Object> many(int count, Object value) {
        Map<String, Object> properties = new HashMap<>();
        for (int n = 0; n < count; n++) {
            properties.put("p" + n, value);
        }
        return properties;
    }

    static final List<Arguments> ACCEPTED = List.of(
        argumentSet("252 properties", many(252, 1)),
        argumentSet("a property name of 255 characters", Map.of("n".repeat(255), 1)),
        argumentSet("an entity just below 1 MiB", many(16, "x".repeat(32000))),
        argumentSet("a property name of other letters", Map.of("größe_数", 1)),
        argumentSet("names that differ in case only", Map.of("name", "a", "Name", "b", "timestamp", "c")));

    static final List<Arguments> REFUSED = List.of(
        argumentSet("a string of more than 32 Ki characters", Map.of("s", "x".repeat(32769)), "PropertyValueTooLarge"),
        argumentSet("a string of more than 16 Ki emoji", Map.of("s", "😀".repeat(16385)), "PropertyValueTooLarge"),
        argumentSet("a binary of more than 64 KiB", Map.of("b", new byte[65537]), "PropertyValueTooLarge"),
        argumentSet("253 properties", many(253, 1), "TooManyProperties"),
        argumentSet("a property name of 256 characters", Map.of("n".repeat(256), 1), "PropertyNameTooLong"),
        argumentSet("a property name with a dash", Map.of("a-b", 1), "PropertyNameInvalid"),
        argumentSet("an entity above 1 MiB", many(17, "x".repeat(32768)), "EntityTooLarge"),
        argumentSet("a date before 1601", Map.of("t", OffsetDateTime.parse("1600-12-31T23:59:59Z")), "OutOfRangeInput"),
        argumentSet("a GUID that is none", Map.of("g", "nothing", "g@odata.type", "Edm.Guid"), "InvalidInput"),
        argumentSet("a date that is none", Map.of("t", "never", "t@odata.type", "Edm.DateTime"), "InvalidInput"),
        argumentSet("an Int64 beyond 64 bits",
            Map.of("l", "9223372036854775808", "l@odata.type", "Edm.Int64"), "InvalidInput"));

    @ParameterizedTest
    @FieldSource("ACCEPTED")
    void acceptedAtTheLimit(Map<String, Object> properties) {
        table.createEntity(one().setProperties(properties));
        assertEquals(properties, stored(table));
    }

    @ParameterizedTest
    @FieldSource("REFUSED")
    void refusedBeyondTheLimit(Map<String, Object> properties, String code) {
        assertRefused(400, code, () -> table.createEntity(one().setProperties(properties)));
        for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
            assertRefused(400, code, () -> table.upsertEntityWithResponse(
                one().setProperties(properties), mode, null, Context.NONE));
        }
        assertEquals(List.of(), all(table));
    }

    @Test
    void aWrongKeyIsAnAuthenticationFailure() {
        String wrong = Base64.getEncoder().encodeToString("wrong".repeat(12).getBytes(StandardCharsets.UTF_8));
        TableServiceClient stranger = builder().endpoint(setting("TableEndpoint"))
            .credential(new AzureNamedKeyCredential(setting("AccountName"), wrong)).buildClient();
        assertRefused(403, "AuthenticationFailed",
            "Make sure the value of Authorization header is formed correctly including the signature.",
            () -> stranger.createTable("table"));
    }
}
