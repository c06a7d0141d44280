// Access policies: stored with the table, returned as set, at most five.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static sdk.Support.SERVICE;
import static sdk.Support.assertRefused;
import static sdk.Support.freshName;
import static sdk.Support.newTable;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableSignedIdentifier;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PoliciesTest {
    // Whole seconds, because the SDK sends no fractions.
    private static final OffsetDateTime START = OffsetDateTime.parse("2021-06-08T02:05:09Z");
    private static final OffsetDateTime EXPIRY = OffsetDateTime.parse("2021-06-08T03:10:09Z");

    private final TableClient table = newTable();

    private static TableSignedIdentifier identifier(
        String id, OffsetDateTime start, OffsetDateTime expiry, String permissions) {
        return new TableSignedIdentifier(id).setAccessPolicy(
            new TableAccessPolicy().setStartsOn(start).setExpiresOn(expiry).setPermissions(permissions));
    }

    private static TableSignedIdentifier identifier(String id) {
        return identifier(id, START, EXPIRY, "r");
    }

    /** The stored policies. The SDK reads an empty list as null. */
    private List<TableSignedIdentifier> identifiers() {
        List<TableSignedIdentifier> found = table.getAccessPolicies().getIdentifiers();
        return found == null ? List.of() : found;
    }

    /** Identifier, start, expiry and permissions of each, in order. */
    private List<List<Object>> policies() {
        return identifiers().stream().map(found -> {
            TableAccessPolicy policy = found.getAccessPolicy() == null ? new TableAccessPolicy() : found.getAccessPolicy();
            return Arrays.<Object>asList(
                found.getId(), policy.getStartsOn(), policy.getExpiresOn(), policy.getPermissions());
        }).toList();
    }

    private List<String> ids() {
        return identifiers().stream().map(TableSignedIdentifier::getId).toList();
    }

    @Test
    void aNewTableHasNone() {
        assertEquals(List.of(), ids());
    }

    @Test
    void theyComeBackAsTheyWereSetInOrder() {
        table.setAccessPolicies(List.of(identifier("full", START, EXPIRY, "raud"), identifier("second")));
        assertEquals(List.of(List.of("full", START, EXPIRY, "raud"), List.of("second", START, EXPIRY, "r")), policies());
    }

    @Test
    void eachFieldIsOptional() {
        table.setAccessPolicies(List.of(
            identifier("start", START, null, null), identifier("expiry", null, EXPIRY, null),
            identifier("permission", null, null, "a"), new TableSignedIdentifier("none")));
        assertEquals(List.of(
            Arrays.<Object>asList("start", START, null, null), Arrays.<Object>asList("expiry", null, EXPIRY, null),
            Arrays.<Object>asList("permission", null, null, "a"), Arrays.<Object>asList("none", null, null, null)),
            policies());
    }

    @Test
    void settingReplacesAllAndAnEmptyListClearsAll() {
        table.setAccessPolicies(List.of(identifier("a"), identifier("b")));
        table.setAccessPolicies(List.of(identifier("c")));
        assertEquals(List.of("c"), ids());
        table.setAccessPolicies(List.of());
        assertEquals(List.of(), ids());
    }

    @Test
    void fiveAreAcceptedAndSixRefused() {
        List<TableSignedIdentifier> six = IntStream.range(0, 6).mapToObj(n -> identifier("id" + n)).toList();
        table.setAccessPolicies(six.subList(0, 5));
        assertRefused(400, "InvalidXmlDocument", () -> table.setAccessPolicies(six));
        assertEquals(List.of("id0", "id1", "id2", "id3", "id4"), ids());
    }

    @Test
    void anIdentifierHas64CharactersAtMostOfAnyKind() {
        String longest = "ü<&>\"' " + "x".repeat(57);
        table.setAccessPolicies(List.of(identifier(longest)));
        assertEquals(List.of(longest), ids());
        assertRefused(400, "InvalidXmlDocument", () -> table.setAccessPolicies(List.of(identifier(longest + "x"))));
    }

    @Test
    void theyGoWithTheirTable() {
        table.setAccessPolicies(List.of(identifier("a")));
        table.deleteTable();
        table.createTable();
        assertEquals(List.of(), ids());
    }

    @Test
    void thoseOfAMissingTableAreNotFound() {
        TableClient missing = SERVICE.getTableClient(freshName());
        assertRefused(404, "TableNotFound", missing::getAccessPolicies);
        assertRefused(404, "TableNotFound", () -> missing.setAccessPolicies(List.of()));
    }
}
