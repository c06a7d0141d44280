// Service properties: the XML that the older client writes, read back.

package old;

import static old.Support.SERVICE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.azure.storage.CorsHttpMethods;
import com.microsoft.azure.storage.CorsRule;
import com.microsoft.azure.storage.LoggingOperations;
import com.microsoft.azure.storage.MetricsLevel;
import com.microsoft.azure.storage.ServiceProperties;
import java.util.EnumSet;
import java.util.List;
import org.junit.jupiter.api.Test;

class PropertiesTest {
    @Test
    void loggingMetricsAndCorsRulesComeBackAsTheyWereSet() throws Exception {
        ServiceProperties before = SERVICE.downloadServiceProperties();
        ServiceProperties set = SERVICE.downloadServiceProperties();
        set.getLogging().setLogOperationTypes(EnumSet.of(LoggingOperations.DELETE, LoggingOperations.WRITE));
        set.getLogging().setRetentionIntervalInDays(7);
        set.getHourMetrics().setMetricsLevel(MetricsLevel.SERVICE_AND_API);
        CorsRule rule = new CorsRule();
        rule.setAllowedOrigins(List.of("http://www.example.com"));
        rule.setAllowedMethods(EnumSet.of(CorsHttpMethods.GET, CorsHttpMethods.PUT));
        rule.setAllowedHeaders(List.of("x-ms-meta-data*", "x-ms-meta-abc"));
        rule.setExposedHeaders(List.of("*"));
        rule.setMaxAgeInSeconds(500);
        set.getCors().getCorsRules().add(rule);
        try {
            SERVICE.uploadServiceProperties(set);
            ServiceProperties found = SERVICE.downloadServiceProperties();
            assertEquals(set.getLogging().getLogOperationTypes(), found.getLogging().getLogOperationTypes());
            assertEquals(7, found.getLogging().getRetentionIntervalInDays());
            assertEquals(MetricsLevel.SERVICE_AND_API, found.getHourMetrics().getMetricsLevel());
            CorsRule last = found.getCors().getCorsRules().get(found.getCors().getCorsRules().size() - 1);
            assertEquals(rule.getAllowedMethods(), last.getAllowedMethods());
            assertEquals(rule.getAllowedHeaders(), last.getAllowedHeaders());
            assertEquals(500, last.getMaxAgeInSeconds());
            assertTrue(last.getAllowedOrigins().contains("http://www.example.com"));
        } finally {
            SERVICE.uploadServiceProperties(before);
        }
    }
}
