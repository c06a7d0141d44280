// Signatures that the older client makes itself: for a table, for ranges of keys, by policy, and for the account.

package old;

import static old.Support.ACCOUNT;
import static old.Support.all;
import static old.Support.assertRefused;
import static old.Support.assertRetrievalRefused;
import static old.Support.entity;
import static old.Support.entityIn;
import static old.Support.freshName;
import static old.Support.get;
import static old.Support.keys;
import static old.Support.newTable;
import static old.Support.values;
import static old.Support.withSas;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.microsoft.azure.storage.IPRange;
import com.microsoft.azure.storage.SharedAccessAccountPolicy;
import com.microsoft.azure.storage.SharedAccessProtocols;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.CloudTableClient;
import com.microsoft.azure.storage.table.SharedAccessTablePolicy;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TablePermissions;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SasTest {
    private static final String FORBIDDEN = "AuthorizationPermissionMismatch";
    private static final String OUT_OF_SCOPE = "AuthorizationFailure";
    private static final String NOT_AUTHENTIC = "AuthenticationFailed";

    private static Date inMinutes(int minutes) {
        return new Date(System.currentTimeMillis() + minutes * 60_000L);
    }

    private static SharedAccessTablePolicy policy(String permissions) {
        SharedAccessTablePolicy policy = new SharedAccessTablePolicy();
        policy.setPermissionsFromString(permissions);
        policy.setSharedAccessExpiryTime(inMinutes(10));
        return policy;
    }

    private static CloudTable at(CloudTable table, String token) throws Exception {
        return withSas(token).getTableReference(table.getName());
    }

    private static CloudTable signed(CloudTable table, SharedAccessTablePolicy policy) throws Exception {
        return at(table, table.generateSharedAccessSignature(policy, null, null, null, null, null));
    }

    private static CloudTable ranged(CloudTable table, String startPk, String startRk, String endPk, String endRk)
            throws Exception {
        return at(table, table.generateSharedAccessSignature(policy("raud"), null, startPk, startRk, endPk, endRk));
    }

    private static CloudTableClient accountSas(Consumer<SharedAccessAccountPolicy> change) throws Exception {
        SharedAccessAccountPolicy policy = new SharedAccessAccountPolicy();
        policy.setServiceFromString("t");
        policy.setResourceTypeFromString("sco");
        policy.setPermissionsFromString("rwdlau");
        policy.setSharedAccessExpiryTime(inMinutes(10));
        change.accept(policy);
        return withSas(ACCOUNT.generateSharedAccessSignature(policy));
    }

    @Test
    void allPermissionsDoEverythingToTheTable() throws Exception {
        CloudTable table = newTable();
        CloudTable sas = signed(table, policy("raud"));
        sas.execute(TableOperation.insert(entity("a", "n", 1)));
        sas.execute(TableOperation.merge(entity("a", "n", 2)));
        sas.execute(TableOperation.replace(entity("a", "n", 3)));
        sas.execute(TableOperation.insertOrReplace(entity("b", "n", 1)));
        sas.execute(TableOperation.insertOrMerge(entity("b", "n", 2)));
        TableBatchOperation batch = new TableBatchOperation();
        batch.insert(entity("c", "n", 1));
        batch.replace(entity("a", "n", 4));
        batch.delete(entity("b"));
        sas.execute(batch);
        assertEquals(List.of("pa", "pc"), keys(all(sas)));
        assertEquals(Map.of("n", "4"), values(get(sas, "a")));
        sas.execute(TableOperation.delete(entity("a")));
    }

    private static void needing(char permission, CloudTable table) throws Exception {
        switch (permission) {
            case 'r' -> assertNotNull(get(table, "there"));
            case 'a' -> table.execute(TableOperation.insert(entity("new")));
            case 'u' -> table.execute(TableOperation.merge(entity("there", "n", 2)));
            default -> table.execute(TableOperation.delete(entity("there")));
        }
    }

    @ParameterizedTest
    @ValueSource(chars = {'r', 'a', 'u', 'd'})
    void onePermissionIsEnoughAndAllOthersAreNot(char needed) throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("there", "n", 1)));
        CloudTable others = signed(table, policy("raud".replace(String.valueOf(needed), "")));
        if (needed == 'r') {
            assertRefused(403, FORBIDDEN, () -> all(others));
        } else {
            assertRefused(403, FORBIDDEN, () -> needing(needed, others));
        }
        needing(needed, signed(table, policy(String.valueOf(needed))));
    }

    @Test
    void aRangeOfKeysBoundsReadsAndWrites() throws Exception {
        CloudTable table = newTable();
        for (String partition : new String[] {"a", "b", "c"}) {
            for (String row : new String[] {"1", "2", "3"}) {
                table.execute(TableOperation.insert(entityIn(partition, row)));
            }
        }
        CloudTable sas = ranged(table, "b", "2", "c", "1");
        assertEquals(List.of("b2", "b3", "c1"), keys(all(sas)));
        sas.execute(TableOperation.merge(entityIn("b", "3", "n", 1)));
        for (String key : new String[] {"a3", "b1", "c2"}) {
            TableOperation outside = TableOperation.merge(entityIn(key.substring(0, 1), key.substring(1), "n", 1));
            assertRefused(403, OUT_OF_SCOPE, () -> sas.execute(outside));
        }
        TableBatchOperation batch = new TableBatchOperation();
        batch.replace(entityIn("b", "2", "n", 1));
        batch.replace(entityIn("b", "1", "n", 1));
        assertRefused(403, OUT_OF_SCOPE, () -> sas.execute(batch));
    }

    // No percent or ampersand: the client decodes them twice.
    @Test
    void aRangeOverAPartitionWhoseKeyNeedsEscaping() throws Exception {
        CloudTable table = newTable();
        String key = "it's Grüße";
        table.execute(TableOperation.insert(entityIn(key, "r")));
        table.execute(TableOperation.insert(entityIn("other", "r")));
        assertEquals(List.of(key + "r"), keys(all(ranged(table, key, null, key, null))));
    }

    @Test
    void aStoredPolicyGivesItsPermissionsUntilItIsRemoved() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("there")));
        TablePermissions permissions = new TablePermissions();
        permissions.setSharedAccessPolicies(new HashMap<>(Map.of("reader", policy("r"))));
        table.uploadPermissions(permissions);
        CloudTable sas = at(table, table.generateSharedAccessSignature(null, "reader", null, null, null, null));
        assertNotNull(get(sas, "there"));
        assertRefused(403, FORBIDDEN, () -> sas.execute(TableOperation.delete(entity("there"))));
        table.uploadPermissions(new TablePermissions());
        assertRefused(403, NOT_AUTHENTIC, () -> all(sas));
    }

    @Test
    void aSignatureHoldsBetweenItsStartAndItsExpiryOnly() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("there")));
        SharedAccessTablePolicy now = policy("r");
        now.setSharedAccessStartTime(inMinutes(-5));
        assertNotNull(get(signed(table, now), "there"));
        SharedAccessTablePolicy later = policy("r");
        later.setSharedAccessStartTime(inMinutes(5));
        SharedAccessTablePolicy earlier = policy("r");
        earlier.setSharedAccessExpiryTime(inMinutes(-5));
        for (SharedAccessTablePolicy wrong : new SharedAccessTablePolicy[] {later, earlier}) {
            CloudTable sas = signed(table, wrong);
            assertRefused(403, NOT_AUTHENTIC, () -> all(sas));
        }
    }

    @Test
    void aRetrievalWithoutPermissionIsRefused() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("there")));
        assertRetrievalRefused(403, signed(table, policy("aud")), "there");
    }

    @Test
    void aSignatureForOtherAddressesDoesNotHold() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("there")));
        CloudTable here = at(table, table.generateSharedAccessSignature(policy("r"), null, null, null, null, null,
            new IPRange("127.0.0.0", "127.0.0.9"), SharedAccessProtocols.HTTPS_HTTP));
        assertNotNull(get(here, "there"));
        CloudTable elsewhere = at(table, table.generateSharedAccessSignature(
            policy("r"), null, null, null, null, null, new IPRange("10.1.2.3"), null));
        assertRefused(403, "AuthorizationSourceIPMismatch", () -> all(elsewhere));
    }

    @Test
    void anAccountSignatureCreatesFillsListsAndDeletesTables() throws Exception {
        CloudTableClient sas = accountSas(policy -> {});
        CloudTable table = sas.getTableReference(freshName());
        table.create();
        table.execute(TableOperation.insert(entity("a", "n", 1)));
        TableBatchOperation batch = new TableBatchOperation();
        batch.replace(entity("a", "n", 2));
        table.execute(batch);
        assertEquals(Map.of("n", "2"), values(get(table, "a")));
        assertEquals(List.of(table.getName()), sas.listTablesSegmented(table.getName()).getResults());
        assertNotNull(sas.downloadServiceProperties());
        table.delete();
    }

    @Test
    void anAccountSignatureHoldsForItsPermissionsAndResourcesOnly() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("there")));
        CloudTable reader = accountSas(policy -> policy.setPermissionsFromString("r")).getTableReference(table.getName());
        assertNotNull(get(reader, "there"));
        assertRefused(403, FORBIDDEN, () -> reader.execute(TableOperation.delete(entity("there"))));
        CloudTable types = accountSas(policy -> policy.setResourceTypeFromString("s")).getTableReference(table.getName());
        assertRefused(403, "AuthorizationResourceTypeMismatch", () -> all(types));
        CloudTable blobs = accountSas(policy -> policy.setServiceFromString("b")).getTableReference(table.getName());
        assertRefused(403, "AuthorizationServiceMismatch", () -> all(blobs));
    }
}
