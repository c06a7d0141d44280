// Shared access signatures from the SDK's own generators: what each field allows and refuses.

package sdk;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static sdk.Support.SERVICE;
import static sdk.Support.all;
import static sdk.Support.assertNotSatisfied;
import static sdk.Support.assertRefused;
import static sdk.Support.builder;
import static sdk.Support.entity;
import static sdk.Support.freshName;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.plain;
import static sdk.Support.query;
import static sdk.Support.setting;
import static sdk.Support.stored;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasIpRange;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasProtocol;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class SasTest {
    private static final String PERMISSION = "AuthorizationPermissionMismatch";
    private static final String RESOURCE_TYPE = "AuthorizationResourceTypeMismatch";
    private static final String SCOPE = "AuthorizationFailure";
    private static final String SIGNATURE = "AuthenticationFailed";

    private final TableClient table = newTable();

    @BeforeEach
    void fill() {
        table.createEntity(one("n", 1));
    }

    /** A time in whole seconds, because signatures and policies have no fractions. */
    private static OffsetDateTime fromNow(int hours) {
        return OffsetDateTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.SECONDS).plusHours(hours);
    }

    /** A client of the whole service whose only credential is a signature. */
    private static TableServiceClient holder(String token) {
        return builder().endpoint(setting("TableEndpoint")).sasToken(token).buildClient();
    }

    private TableClient tableHolder(String token) {
        return holder(token).getTableClient(table.getTableName());
    }

    private static TableAccountSasSignatureValues account(String letters, String types) {
        return account(letters, types, "t", fromNow(1));
    }

    private static TableAccountSasSignatureValues account(
        String letters, String types, String services, OffsetDateTime expiry) {
        return new TableAccountSasSignatureValues(expiry, TableAccountSasPermission.parse(letters),
            TableAccountSasService.parse(services), TableAccountSasResourceType.parse(types));
    }

    private static TableServiceClient holder(TableAccountSasSignatureValues values) {
        return holder(SERVICE.generateAccountSas(values));
    }

    private static TableSasSignatureValues forTable(String letters) {
        return new TableSasSignatureValues(fromNow(1), TableSasPermission.parse(letters));
    }

    private TableClient holder(TableSasSignatureValues values) {
        return tableHolder(table.generateSas(values));
    }

    /** The verbs on an entity, each with the permission letters it needs. */
    private enum Verb {
        GET("r"), LIST("r"), CREATE("a"), UPDATE("u"), UPSERT("au"), DELETE("d");

        private final String needed;

        Verb(String needed) {
            this.needed = needed;
        }

        boolean isAllowedBy(String granted) {
            return needed.chars().allMatch(letter -> granted.indexOf(letter) >= 0);
        }

        void call(TableClient table) {
            switch (this) {
                case GET -> assertEquals(Map.of("n", 1), stored(table));
                case LIST -> assertEquals(1, all(table).size());
                case CREATE -> table.createEntity(entity("p", "new"));
                case UPDATE -> table.updateEntity(one("n", 2));
                case UPSERT -> table.upsertEntity(one("n", 3));
                case DELETE -> table.deleteEntity("p", "r");
                default -> throw new IllegalStateException();
            }
        }
    }

    private static void check(boolean allowed, String code, Executable call) {
        if (allowed) {
            assertDoesNotThrow(call);
        } else {
            assertRefused(403, code, call);
        }
    }

    static Stream<Arguments> grantsAndVerbs() {
        return Stream.of("r", "a", "u", "d", "au", "raud")
            .flatMap(granted -> Stream.of(Verb.values()).map(verb -> Arguments.of(granted, verb)));
    }

    @ParameterizedTest
    @MethodSource("grantsAndVerbs")
    void tableSpAllowsItsVerbsAndNoOthers(String granted, Verb verb) {
        TableClient client = holder(forTable(granted));
        check(verb.isAllowedBy(granted), PERMISSION, () -> verb.call(client));
    }

    @ParameterizedTest
    @MethodSource("grantsAndVerbs")
    void accountSpAllowsItsVerbsAndNoOthers(String granted, Verb verb) {
        TableClient client = holder(account(granted, "sco")).getTableClient(table.getTableName());
        check(verb.isAllowedBy(granted), PERMISSION, () -> verb.call(client));
    }

    /** Operations on tables and on the service: each needs the resource type and any one of the letters. */
    private enum ServiceVerb {
        LIST_TABLES("c", "l"), CREATE_TABLE("c", "cw"), GET_PROPERTIES("s", "r"), SET_PROPERTIES("s", "w");

        private final String type;
        private final String anyOf;

        ServiceVerb(String type, String anyOf) {
            this.type = type;
            this.anyOf = anyOf;
        }

        void call(TableServiceClient client) {
            switch (this) {
                case LIST_TABLES -> assertFalse(client.listTables().stream().toList().isEmpty());
                case CREATE_TABLE -> client.createTable(freshName());
                case GET_PROPERTIES -> assertNotNull(client.getProperties().getLogging());
                case SET_PROPERTIES -> client.setProperties(new TableServiceProperties().setCorsRules(List.of()));
                default -> throw new IllegalStateException();
            }
        }
    }

    static Stream<Arguments> lettersAndServiceVerbs() {
        return Stream.of("r", "w", "d", "l", "a", "c", "u")
            .flatMap(letter -> Stream.of(ServiceVerb.values()).map(verb -> Arguments.of(letter, verb)));
    }

    @ParameterizedTest
    @MethodSource("lettersAndServiceVerbs")
    void accountSpOnTheServiceAndItsTables(String letter, ServiceVerb verb) {
        check(verb.anyOf.contains(letter), PERMISSION, () -> verb.call(holder(account(letter, "sco"))));
    }

    static Stream<Arguments> typesAndServiceVerbs() {
        return Stream.of("s", "c", "o")
            .flatMap(type -> Stream.of(ServiceVerb.values()).map(verb -> Arguments.of(type, verb)));
    }

    @ParameterizedTest
    @MethodSource("typesAndServiceVerbs")
    void accountSrtOnTheServiceAndItsTables(String type, ServiceVerb verb) {
        check(verb.type.equals(type), RESOURCE_TYPE, () -> verb.call(holder(account("rwdlacu", type))));
    }

    @ParameterizedTest
    @ValueSource(strings = {"s", "c", "o"})
    void accountSrtOfEntitiesIsObject(String type) {
        TableClient client = holder(account("rwdlacu", type)).getTableClient(table.getTableName());
        for (Verb verb : Verb.values()) {
            check(type.equals("o"), RESOURCE_TYPE, () -> verb.call(client));
            table.upsertEntityWithResponse(one("n", 1), TableEntityUpdateMode.REPLACE, null, Context.NONE);
            table.deleteEntity("p", "new");
        }
    }

    @Test
    void deletingATableNeedsDAndC() {
        String name = table.getTableName();
        assertRefused(403, PERMISSION, () -> holder(account("rwlacu", "sco")).deleteTable(name));
        assertRefused(403, RESOURCE_TYPE, () -> holder(account("d", "so")).deleteTable(name));
        holder(account("d", "c")).deleteTable(name);
        assertRefused(404, "TableNotFound", () -> all(table));
    }

    @ParameterizedTest
    @CsvSource({"b, false", "qf, false", "t, true", "bqtf, true"})
    void accountSsMustNameTables(String services, boolean allowed) {
        TableServiceClient client = holder(account("r", "o", services, fromNow(1)));
        check(allowed, "AuthorizationServiceMismatch",
            () -> Verb.GET.call(client.getTableClient(table.getTableName())));
    }

    @ParameterizedTest
    @CsvSource({
        "-1, 1, , , ", // st in the past
        "1, 2, , , AuthenticationFailed",
        "-2, -1, , , AuthenticationFailed",
        ", 1, 127.0.0.1, , ",
        ", 1, 127.0.0.0-127.0.0.255, , ",
        ", 1, 10.0.0.1, , AuthorizationSourceIPMismatch",
        ", 1, 127.0.0.2-127.0.0.9, , AuthorizationSourceIPMismatch",
        ", 1, , HTTPS_HTTP, ",
        ", 1, , HTTPS_ONLY, AuthorizationProtocolMismatch",
    })
    void stSeSipAndSprBoundASignature(
        Integer start, int expiry, String addresses, TableSasProtocol protocol, String refusal) {
        TableAccountSasSignatureValues account = account("r", "o", "t", fromNow(expiry)).setProtocol(protocol);
        TableSasSignatureValues forTable = forTable("r").setExpiryTime(fromNow(expiry)).setProtocol(protocol);
        if (start != null) {
            account.setStartTime(fromNow(start));
            forTable.setStartTime(fromNow(start));
        }
        if (addresses != null) {
            account.setSasIpRange(TableSasIpRange.parse(addresses));
            forTable.setSasIpRange(TableSasIpRange.parse(addresses));
        }
        check(refusal == null, refusal, () -> Verb.GET.call(tableHolder(SERVICE.generateAccountSas(account))));
        check(refusal == null, refusal, () -> Verb.GET.call(holder(forTable)));
    }

    @Test
    void theSignatureOfAnotherKeyIsRefused() {
        TableServiceClient stranger = builder().endpoint(setting("TableEndpoint"))
            .credential(new AzureNamedKeyCredential(setting("AccountName"), "d3Jvbmc=")).buildClient();
        String ofAccount = stranger.generateAccountSas(account("r", "o"));
        String ofTable = stranger.getTableClient(table.getTableName()).generateSas(forTable("r"));
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(tableHolder(ofAccount)));
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(tableHolder(ofTable)));
    }

    @Test
    void aFieldThatWasChangedAfterSigningIsRefused() {
        String token = table.generateSas(forTable("r")).replace("sp=r", "sp=raud");
        assertRefused(403, SIGNATURE, () -> Verb.DELETE.call(tableHolder(token)));
        Verb.GET.call(table);
    }

    @Test
    void tnIsTheTableWhateverItsCaseAndNoOther() {
        TableClient upper = SERVICE.getTableClient(table.getTableName().toUpperCase(Locale.ROOT));
        Verb.GET.call(tableHolder(upper.generateSas(forTable("r"))));
        TableClient other = tableHolder(SERVICE.getTableClient("another").generateSas(forTable("raud")));
        for (Verb verb : Verb.values()) {
            assertRefused(403, SCOPE, () -> verb.call(other));
        }
        Verb.GET.call(table);
    }

    @Test
    void aTableSasIsForEntitiesOnly() {
        TableServiceClient client = holder(table.generateSas(forTable("raud")));
        for (ServiceVerb verb : ServiceVerb.values()) {
            assertRefused(403, SCOPE, () -> verb.call(client));
        }
        assertRefused(403, SCOPE, () -> client.deleteTable(table.getTableName()));
        Verb.GET.call(table);
    }

    @Test
    void noSasIsForAccessPolicies() {
        for (TableClient client : List.of(
            tableHolder(SERVICE.generateAccountSas(account("rwdlacu", "sco"))), holder(forTable("raud")))) {
            assertRefused(403, SCOPE, client::getAccessPolicies);
            assertRefused(403, SCOPE, () -> client.setAccessPolicies(List.of()));
        }
    }

    @ParameterizedTest
    @CsvSource({"b2, ", ", b1", "a3, c0", "b2, b2", "x0, y0"})
    void spkSrkEpkErkBoundQueriesAndWrites(String low, String high) {
        TableClient grid = newTable();
        TableSasSignatureValues values = forTable("raud");
        if (low != null) {
            values.setStartPartitionKey(low.substring(0, 1)).setStartRowKey(low.substring(1));
        }
        if (high != null) {
            values.setEndPartitionKey(high.substring(0, 1)).setEndRowKey(high.substring(1));
        }
        TableClient client = holder(grid.generateSas(values)).getTableClient(grid.getTableName());
        List<String> inside = new ArrayList<>();
        for (String key : List.of("a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "c0", "c1", "c2", "c3")) {
            String partition = key.substring(0, 1);
            String row = key.substring(1);
            grid.createEntity(entity(partition, row));
            boolean allowed = (low == null || key.compareTo(low) >= 0) && (high == null || key.compareTo(high) <= 0);
            if (allowed) {
                inside.add(key);
            }
            // What is outside does not exist for a reader.
            if (allowed) {
                client.getEntity(partition, row);
            } else {
                assertRefused(404, "ResourceNotFound", () -> client.getEntity(partition, row));
            }
            check(allowed, SCOPE, () -> client.upsertEntity(entity(partition, row)));
            check(allowed, SCOPE, () -> client.updateEntity(entity(partition, row, "n", 1)));
        }
        assertEquals(inside, keys(all(client)));
        assertEquals(inside, keys(query(client, new ListEntitiesOptions().setTop(1))));
        assertEquals(inside, keys(query(grid, "n eq 1")));
    }

    private static List<String> keys(List<TableEntity> entities) {
        return entities.stream().map(found -> found.getPartitionKey() + found.getRowKey()).toList();
    }

    @ParameterizedTest
    @CsvSource({"ud, 0", "ad, 1", "au, 2"})
    void aTransactionNeedsEveryLetterThatItsOperationsNeed(String granted, int index) {
        table.createEntity(entity("p", "gone"));
        List<TableTransactionAction> actions = List.of(
            new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "a")),
            new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, one("n", 2)),
            new TableTransactionAction(TableTransactionActionType.DELETE, entity("p", "gone")));
        assertFailsAt(index, PERMISSION, holder(forTable(granted)), actions);
        assertEquals(List.of("pgone", "pr"), keys(all(table)));
        holder(forTable("aud")).submitTransaction(actions);
        assertEquals(List.of("pa", "pr"), keys(all(table)));
    }

    @Test
    void aTransactionStaysWithinTheRange() {
        TableClient client = holder(forTable("raud").setStartPartitionKey("p").setStartRowKey("r"));
        List<TableTransactionAction> actions = List.of(
            new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, one("n", 2)),
            new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "a")));
        assertFailsAt(1, SCOPE, client, actions);
        assertEquals(Map.of("n", 1), stored(table));
    }

    private static void assertFailsAt(int index, String code, TableClient client, List<TableTransactionAction> actions) {
        TableTransactionFailedException failure =
            assertThrows(TableTransactionFailedException.class, () -> client.submitTransaction(actions));
        assertEquals(code, failure.getValue().getErrorCode().toString());
        assertEquals(index, failure.getFailedTransactionActionIndex());
    }

    private void setPolicy(TableAccessPolicy policy) {
        table.setAccessPolicies(List.of(new TableSignedIdentifier("reader").setAccessPolicy(policy)));
    }

    private static TableAccessPolicy policy() {
        return new TableAccessPolicy();
    }

    private static TableSasSignatureValues byPolicy() {
        return new TableSasSignatureValues("reader");
    }

    @Test
    void siAndTheTokenCompleteEachOther() {
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(holder(forTable("r").setIdentifier("reader"))));
        setPolicy(policy().setStartsOn(fromNow(-1)).setExpiresOn(fromNow(1)).setPermissions("r"));
        Verb.GET.call(holder(byPolicy()));
        setPolicy(policy().setPermissions("r"));
        Verb.GET.call(holder(byPolicy().setExpiryTime(fromNow(1))));
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(holder(byPolicy())));
        setPolicy(policy().setExpiresOn(fromNow(1)));
        Verb.GET.call(holder(byPolicy().setPermissions(TableSasPermission.parse("r"))));
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(holder(byPolicy())));
    }

    @Test
    void changingThePolicyChangesTheTokensThatNameIt() {
        setPolicy(policy().setExpiresOn(fromNow(1)).setPermissions("r"));
        TableClient client = holder(byPolicy());
        Verb.GET.call(client);
        assertRefused(403, PERMISSION, () -> Verb.CREATE.call(client));
        setPolicy(policy().setExpiresOn(fromNow(1)).setPermissions("a"));
        assertRefused(403, PERMISSION, () -> Verb.GET.call(client));
        setPolicy(policy().setExpiresOn(fromNow(-1)).setPermissions("r"));
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(client));
        setPolicy(policy().setStartsOn(fromNow(1)).setExpiresOn(fromNow(2)).setPermissions("r"));
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(client));
        table.setAccessPolicies(List.of());
        assertRefused(403, SIGNATURE, () -> Verb.GET.call(client));
    }

    @Test
    void aSignatureAndConditionsWorkTogether() {
        TableClient client = holder(forTable("raud"));
        TableEntity stale = client.getEntity("p", "r");
        table.updateEntity(one("n", 2));
        assertNotSatisfied(() -> client.updateEntityWithResponse(
            stale, TableEntityUpdateMode.MERGE, true, null, Context.NONE));
        assertEquals(Map.of("n", 2), plain(client.getEntity("p", "r")));
    }
}
