// Service properties and statistics: stored for the account, returned as set, each part independent of the others.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static sdk.Support.SERVICE;
import static sdk.Support.assertRefused;
import static sdk.Support.builder;
import static sdk.Support.entity;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.setting;
import static sdk.Support.stored;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceGeoReplication;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PropertiesTest {
    private static final TableServiceClient SECONDARY = builder().endpoint(setting("TableEndpoint") + "-secondary")
        .credential(new AzureNamedKeyCredential(setting("AccountName"), setting("AccountKey"))).buildClient();

    private static TableServiceRetentionPolicy retention(Integer days) {
        return new TableServiceRetentionPolicy().setEnabled(days != null).setDaysToRetain(days);
    }

    private static TableServiceLogging logging(boolean on, Integer days) {
        return new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(on).setWriteLogged(on)
            .setDeleteLogged(on).setRetentionPolicy(retention(days));
    }

    private static TableServiceMetrics metrics(Boolean includeApis, Integer days) {
        return new TableServiceMetrics().setVersion("1.0").setEnabled(includeApis != null).setIncludeApis(includeApis)
            .setRetentionPolicy(retention(days));
    }

    private static TableServiceCorsRule rule(String origins) {
        return new TableServiceCorsRule().setAllowedOrigins(origins).setAllowedMethods("GET").setAllowedHeaders("")
            .setExposedHeaders("").setMaxAgeInSeconds(0);
    }

    private static TableServiceProperties wanted() {
        return new TableServiceProperties();
    }

    @BeforeEach
    void everythingOff() {
        SERVICE.setProperties(wanted().setLogging(logging(false, null)).setHourMetrics(metrics(null, null))
            .setMinuteMetrics(metrics(null, null)).setCorsRules(List.of()));
    }

    // The SDK's models define no equality, so compare their values.

    private static List<Object> values(TableServiceLogging logging) {
        TableServiceRetentionPolicy retention = logging.getRetentionPolicy();
        return Arrays.asList(logging.getAnalyticsVersion(), logging.isReadLogged(), logging.isWriteLogged(),
            logging.isDeleteLogged(), retention.isEnabled(), retention.getDaysToRetain());
    }

    private static List<Object> values(TableServiceMetrics metrics) {
        TableServiceRetentionPolicy retention = metrics.getTableServiceRetentionPolicy();
        return Arrays.asList(metrics.getVersion(), metrics.isEnabled(), metrics.isIncludeApis(),
            retention.isEnabled(), retention.getDaysToRetain());
    }

    private static List<List<Object>> values(List<TableServiceCorsRule> rules) {
        return rules == null ? List.of() : rules.stream().map(rule -> Arrays.<Object>asList(rule.getAllowedOrigins(), rule.getAllowedMethods(),
            text(rule.getAllowedHeaders()), text(rule.getExposedHeaders()), rule.getMaxAgeInSeconds())).toList();
    }

    /** The SDK reads an empty element as null, here and above. */
    private static String text(String value) {
        return value == null ? "" : value;
    }

    @Test
    void everythingCanBeOff() {
        TableServiceProperties found = SERVICE.getProperties();
        assertEquals(values(logging(false, null)), values(found.getLogging()));
        assertEquals(values(metrics(null, null)), values(found.getHourMetrics()));
        assertEquals(values(metrics(null, null)), values(found.getMinuteMetrics()));
        assertEquals(List.of(), values(found.getCorsRules()));
    }

    @Test
    void loggingComesBackAsSet() {
        SERVICE.setProperties(wanted().setLogging(logging(true, 5)));
        assertEquals(values(logging(true, 5)), values(SERVICE.getProperties().getLogging()));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void metricsComeBackAsSet(boolean includeApis) {
        SERVICE.setProperties(wanted().setHourMetrics(metrics(includeApis, 7)));
        SERVICE.setProperties(wanted().setMinuteMetrics(metrics(!includeApis, 8)));
        TableServiceProperties found = SERVICE.getProperties();
        assertEquals(values(metrics(includeApis, 7)), values(found.getHourMetrics()));
        assertEquals(values(metrics(!includeApis, 8)), values(found.getMinuteMetrics()));
    }

    @Test
    void corsRulesComeBackAsSetInOrder() {
        List<TableServiceCorsRule> rules = List.of(rule("www.xyz.com"), new TableServiceCorsRule()
            .setAllowedOrigins("http://www.fabrikam.com,http://*.contoso.com").setAllowedMethods("GET,PUT,MERGE,PATCH")
            .setAllowedHeaders("x-ms-meta-target*,x-ms-meta-customheader")
            .setExposedHeaders("x-ms-meta-data*,x-ms-meta-customheader").setMaxAgeInSeconds(500));
        SERVICE.setProperties(wanted().setCorsRules(rules));
        assertEquals(values(rules), values(SERVICE.getProperties().getCorsRules()));
    }

    @Test
    void aPartThatIsLeftOutStays() {
        SERVICE.setProperties(wanted().setLogging(logging(true, 5)));
        SERVICE.setProperties(wanted().setCorsRules(List.of(rule("*"))));
        SERVICE.setProperties(wanted().setHourMetrics(metrics(true, 7)));
        TableServiceProperties found = SERVICE.getProperties();
        assertEquals(values(logging(true, 5)), values(found.getLogging()));
        assertEquals(values(metrics(true, 7)), values(found.getHourMetrics()));
        assertEquals(values(metrics(null, null)), values(found.getMinuteMetrics()));
        assertEquals(values(List.of(rule("*"))), values(found.getCorsRules()));
    }

    @Test
    void fiveRulesAreAcceptedAndSixRefused() {
        List<TableServiceCorsRule> six =
            IntStream.range(0, 6).mapToObj(n -> rule("http://" + n + ".example")).toList();
        SERVICE.setProperties(wanted().setCorsRules(six.subList(0, 5)));
        assertRefused(400, "InvalidXmlDocument", () -> SERVICE.setProperties(wanted().setCorsRules(six)));
        assertEquals(values(six.subList(0, 5)), values(SERVICE.getProperties().getCorsRules()));
    }

    @Test
    void retentionIsOneTo365Days() {
        for (int days : new int[] {1, 365}) {
            SERVICE.setProperties(wanted().setMinuteMetrics(metrics(true, days)));
            assertEquals(values(metrics(true, days)), values(SERVICE.getProperties().getMinuteMetrics()));
        }
        for (int days : new int[] {0, 366}) {
            assertRefused(400, "InvalidXmlDocument",
                () -> SERVICE.setProperties(wanted().setMinuteMetrics(metrics(true, days))));
        }
        assertEquals(values(metrics(true, 365)), values(SERVICE.getProperties().getMinuteMetrics()));
    }

    @Test
    void settingAnswers202() {
        assertEquals(202, SERVICE.setPropertiesWithResponse(
            wanted().setLogging(logging(false, null)), null, Context.NONE).getStatusCode());
    }

    @Test
    void statisticsComeFromTheSecondaryOnly() {
        OffsetDateTime before = OffsetDateTime.now().truncatedTo(ChronoUnit.SECONDS);
        TableServiceGeoReplication found = SECONDARY.getStatistics().getGeoReplication();
        assertEquals("live", found.getStatus().toString());
        assertFalse(found.getLastSyncTime().isBefore(before) || found.getLastSyncTime().isAfter(OffsetDateTime.now()));
        assertRefused(400, "InvalidQueryParameterValue", SERVICE::getStatistics);
    }

    @Test
    void theSecondaryReadsButDoesNotWrite() {
        TableClient table = newTable();
        table.createEntity(one("n", 1));
        TableClient other = SECONDARY.getTableClient(table.getTableName());
        assertEquals(Map.of("n", 1), stored(other));
        assertRefused(403, "InsufficientAccountPermissions", () -> other.createEntity(entity("p", "s")));
        assertRefused(403, "InsufficientAccountPermissions", () -> other.upsertEntity(one("n", 2)));
        assertRefused(403, "InsufficientAccountPermissions", () -> SECONDARY.setProperties(wanted()));
        assertEquals(Map.of("n", 1), stored(table));
    }
}
