// Stored access policies: set, read back, replaced, cleared and refused.

package old;

import static old.Support.assertRefused;
import static old.Support.missingTable;
import static old.Support.newTable;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.SharedAccessTablePolicy;
import com.microsoft.azure.storage.table.TablePermissions;
import java.util.Date;
import java.util.HashMap;
import java.util.Set;
import org.junit.jupiter.api.Test;

class PoliciesTest {
    private static final Date START = new Date(1577934245000L);
    private static final Date EXPIRY = new Date(4102444799000L);

    private static SharedAccessTablePolicy policy(String permissions) {
        SharedAccessTablePolicy policy = new SharedAccessTablePolicy();
        policy.setPermissionsFromString(permissions);
        policy.setSharedAccessStartTime(START);
        policy.setSharedAccessExpiryTime(EXPIRY);
        return policy;
    }

    private static TablePermissions permissions(String... namesAndPermissions) {
        HashMap<String, SharedAccessTablePolicy> policies = new HashMap<>();
        for (int n = 0; n < namesAndPermissions.length; n += 2) {
            policies.put(namesAndPermissions[n], policy(namesAndPermissions[n + 1]));
        }
        TablePermissions made = new TablePermissions();
        made.setSharedAccessPolicies(policies);
        return made;
    }

    @Test
    void aNewTableHasNone() throws Exception {
        assertEquals(Set.of(), newTable().downloadPermissions().getSharedAccessPolicies().keySet());
    }

    @Test
    void policiesComeBackAsTheyWereSet() throws Exception {
        CloudTable table = newTable();
        table.uploadPermissions(permissions("reader", "r", "it's all <&> Grüße", "raud"));
        HashMap<String, SharedAccessTablePolicy> found = table.downloadPermissions().getSharedAccessPolicies();
        assertEquals(Set.of("reader", "it's all <&> Grüße"), found.keySet());
        assertEquals("r", found.get("reader").permissionsToString());
        assertEquals(START, found.get("reader").getSharedAccessStartTime());
        assertEquals(EXPIRY, found.get("reader").getSharedAccessExpiryTime());
        assertEquals("raud", found.get("it's all <&> Grüße").permissionsToString());
    }

    @Test
    void settingReplacesAllAndNothingClearsAll() throws Exception {
        CloudTable table = newTable();
        table.uploadPermissions(permissions("a", "r", "b", "a"));
        table.uploadPermissions(permissions("c", "d"));
        assertEquals(Set.of("c"), table.downloadPermissions().getSharedAccessPolicies().keySet());
        table.uploadPermissions(permissions());
        assertEquals(Set.of(), table.downloadPermissions().getSharedAccessPolicies().keySet());
    }

    @Test
    void policiesOfAMissingTableAreNotFound() throws Exception {
        CloudTable table = missingTable();
        assertRefused(404, "TableNotFound", table::downloadPermissions);
        assertRefused(404, "TableNotFound", () -> table.uploadPermissions(permissions()));
    }
}
