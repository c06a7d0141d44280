// Properties and statistics of the Queue service: each part independent of the others.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static sdk.QueueSupport.QUEUES;
import static sdk.QueueSupport.SECONDARY;
import static sdk.QueueSupport.newQueue;
import static sdk.QueueSupport.peekTexts;
import static sdk.QueueSupport.refused;

import com.azure.core.exception.HttpResponseException;
import com.azure.core.util.Context;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.QueueAnalyticsLogging;
import com.azure.storage.queue.models.QueueCorsRule;
import com.azure.storage.queue.models.QueueMetrics;
import com.azure.storage.queue.models.QueueRetentionPolicy;
import com.azure.storage.queue.models.QueueServiceProperties;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class QueuePropertiesTest {
    private static final QueueRetentionPolicy OFF = new QueueRetentionPolicy().setEnabled(false);

    private static QueueRetentionPolicy days(int days) {
        return new QueueRetentionPolicy().setEnabled(true).setDays(days);
    }

    private static QueueMetrics metrics(boolean enabled, Boolean includeApis, QueueRetentionPolicy retention) {
        return new QueueMetrics().setVersion("1.0").setEnabled(enabled).setIncludeApis(includeApis)
            .setRetentionPolicy(retention);
    }

    private static QueueAnalyticsLogging logging(boolean on, QueueRetentionPolicy retention) {
        return new QueueAnalyticsLogging().setVersion("1.0").setRead(on).setWrite(on).setDelete(on)
            .setRetentionPolicy(retention);
    }

    private static QueueCorsRule rule(String origins) {
        return new QueueCorsRule().setAllowedOrigins(origins).setAllowedMethods("GET,PUT")
            .setAllowedHeaders("x-ms-meta-*").setExposedHeaders("x-ms-*").setMaxAgeInSeconds(500);
    }

    private static List<Object> values(QueueMetrics found) {
        return Arrays.asList(found.getVersion(), found.isEnabled(), found.isIncludeApis(),
            found.getRetentionPolicy().isEnabled(), found.getRetentionPolicy().getDays());
    }

    private static List<Object> values(QueueAnalyticsLogging found) {
        return Arrays.asList(found.getVersion(), found.isRead(), found.isWrite(), found.isDelete(),
            found.getRetentionPolicy().isEnabled(), found.getRetentionPolicy().getDays());
    }

    private static List<List<Object>> values(List<QueueCorsRule> rules) {
        return rules.stream().map(rule -> Arrays.<Object>asList(rule.getAllowedOrigins(), rule.getAllowedMethods(),
            rule.getAllowedHeaders(), rule.getExposedHeaders(), rule.getMaxAgeInSeconds())).toList();
    }

    @BeforeEach
    void everythingOff() {
        QUEUES.setProperties(new QueueServiceProperties().setAnalyticsLogging(logging(false, OFF))
            .setHourMetrics(metrics(false, null, OFF)).setMinuteMetrics(metrics(false, null, OFF)).setCors(List.of()));
    }

    @Test
    void everythingCanBeOff() {
        QueueServiceProperties found = QUEUES.getProperties();
        assertEquals(Arrays.asList("1.0", false, false, false, false, null), values(found.getAnalyticsLogging()));
        assertEquals(Arrays.asList("1.0", false, null, false, null), values(found.getHourMetrics()));
        assertEquals(Arrays.asList("1.0", false, null, false, null), values(found.getMinuteMetrics()));
        assertEquals(List.of(), found.getCors());
    }

    @Test
    void everythingComesBackAsSet() {
        List<QueueCorsRule> rules = List.of(rule("http://www.contoso.com"), rule("*"));
        assertEquals(202, QUEUES.setPropertiesWithResponse(new QueueServiceProperties()
            .setAnalyticsLogging(logging(true, days(5))).setHourMetrics(metrics(true, true, days(1)))
            .setMinuteMetrics(metrics(true, false, days(365))).setCors(rules), null, Context.NONE).getStatusCode());
        QueueServiceProperties found = QUEUES.getProperties();
        assertEquals(Arrays.asList("1.0", true, true, true, true, 5), values(found.getAnalyticsLogging()));
        assertEquals(Arrays.asList("1.0", true, true, true, 1), values(found.getHourMetrics()));
        assertEquals(Arrays.asList("1.0", true, false, true, 365), values(found.getMinuteMetrics()));
        assertEquals(values(rules), values(found.getCors()));
    }

    @Test
    void fiveRulesAreAcceptedAndSixRefused() {
        List<QueueCorsRule> six = Stream.of("a", "b", "c", "d", "e", "f").map(n -> rule("http://" + n + ".example")).toList();
        QueueServiceProperties properties = QUEUES.getProperties();
        QUEUES.setProperties(properties.setCors(six.subList(0, 5)));
        refused(400, "InvalidXmlDocument", () -> QUEUES.setProperties(properties.setCors(six)));
        assertEquals(5, QUEUES.getProperties().getCors().size());
    }

    @Test
    void retentionIsOneTo365Days() {
        for (int days : new int[] {0, 366}) {
            QueueServiceProperties properties = QUEUES.getProperties().setMinuteMetrics(metrics(true, true, days(days)));
            refused(400, "InvalidXmlDocument", () -> QUEUES.setProperties(properties));
        }
    }

    @Test
    void statisticsComeFromTheSecondary() {
        // This version of the SDK looks for another root element than the service writes, so it cannot read the answer.
        HttpResponseException unread = assertThrows(HttpResponseException.class, SECONDARY::getStatistics);
        assertEquals(200, unread.getResponse().getStatusCode());
        assertTrue(String.valueOf(unread.getCause()).contains("StorageServiceStats"), unread::toString);
        refused(400, "InvalidQueryParameterValue", QUEUES::getStatistics);
    }

    @Test
    void theSecondaryReadsButDoesNotWrite() {
        QueueClient queue = newQueue();
        queue.sendMessage("text");
        QueueClient other = SECONDARY.getQueueClient(queue.getQueueName());
        assertEquals(List.of("text"), peekTexts(other));
        refused(403, "InsufficientAccountPermissions", () -> other.sendMessage("more"));
        refused(403, "InsufficientAccountPermissions", other::receiveMessage);
        assertEquals(1, QueueSupport.count(other));
    }
}
