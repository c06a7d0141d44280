// Property types: values come back equal and of the same type, also at the extremes.

package sdk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static sdk.Support.all;
import static sdk.Support.newTable;
import static sdk.Support.one;
import static sdk.Support.plain;
import static sdk.Support.stored;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TypesTest {
    private final TableClient table = newTable();

    /** Expects the value from a point read, from a listing, and after writing back the entity that was read. */
    private void roundtrip(Object value) {
        table.createEntity(one("v", value));
        assertEquals(Map.of("v", value), stored(table));
        assertEquals(Map.of("v", value), plain(all(table).get(0)));
        table.updateEntity(table.getEntity("p", "r"), TableEntityUpdateMode.REPLACE);
        assertEquals(Map.of("v", value), stored(table));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, -1, Integer.MAX_VALUE, Integer.MIN_VALUE})
    void int32(int value) {
        roundtrip(value);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1, 1L << 31, (1L << 53) + 1, Long.MAX_VALUE, Long.MIN_VALUE})
    void int64(long value) {
        roundtrip(value);
    }

    @ParameterizedTest
    @ValueSource(doubles = {
        0.1, 1.0 / 3, 3.1, -2.5, 5.0, 1e21, 1e-7, 123456789012345.12, Double.MAX_VALUE, Double.MIN_VALUE,
    })
    void doubles(double value) {
        roundtrip(value);
    }

    @ParameterizedTest
    @ValueSource(doubles = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY})
    void specialDoubles(double value) {
        // The SDK writes these as text without their type. With the type, they are read back as doubles.
        table.createEntity(one("v", value, "v@odata.type", "Edm.Double"));
        assertEquals(Map.of("v", value), stored(table));
        table.updateEntity(table.getEntity("p", "r"), TableEntityUpdateMode.REPLACE);
        assertEquals(Map.of("v", value), stored(table));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void booleans(boolean value) {
        roundtrip(value);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "1601-01-01T00:00:00Z", "1601-01-01T00:00:00.0000001Z", "1969-12-31T23:59:59.999Z", "2024-02-29T12:30:15.25Z",
        "2020-01-01T01:02:03.1234567Z", "9999-12-31T23:59:59.9999999Z",
    })
    void dateTime(String text) {
        roundtrip(OffsetDateTime.parse(text));
    }

    @Test
    void aDateOfAnotherZoneComesBackInUtc() {
        table.createEntity(one("v", OffsetDateTime.parse("2020-01-01T01:30:00+02:00")));
        assertEquals(Map.of("v", OffsetDateTime.parse("2019-12-31T23:30:00Z")), stored(table));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "00000000-0000-0000-0000-000000000000", "c9da6455-213d-42c9-9a79-3e9149a57833",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    })
    void guid(String text) {
        roundtrip(UUID.fromString(text));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 256, 65536})
    void binary(int length) {
        byte[] value = new byte[length];
        IntStream.range(0, length).forEach(n -> value[n] = (byte) (n * 7));
        table.createEntity(one("v", value));
        assertArrayEquals(value, (byte[]) table.getEntity("p", "r").getProperty("v"));
        assertArrayEquals(value, (byte[]) all(table).get(0).getProperty("v"));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", " ", "  leading and trailing  ", "line\r\nbreak\ttab\u0000\u001f end", "quotes ' \" \\ / {} [] \u2028",
        "käse ß 日本語 العربية", "😀 👩‍🚀 \udbff\udfff \ud800\udc00", "\ufffd \ufeff \ue000", "NaN",
        "2020-01-01T00:00:00Z", "c9da6455-213d-42c9-9a79-3e9149a57833",
    })
    void string(String value) {
        roundtrip(value);
    }

    @Test
    void aStringOf32KiCharacters() {
        roundtrip("x".repeat(32768));
    }

    @Test
    void aStringOf16KiEmoji() {
        roundtrip("😀".repeat(16384));
    }

    @Test
    void allTypesInOneEntity() {
        Map<String, Object> sent = Map.of(
            "text", "text", "int32", -7, "int64", 1L << 40, "double", 2.5, "boolean", false,
            "date", OffsetDateTime.parse("2021-03-04T05:06:07.89Z"),
            "guid", UUID.fromString("a455c695-df98-5678-aaaa-81d3367e5a34"));
        table.createEntity(one().setProperties(sent).addProperty("binary", new byte[] {0, 1, 2}));
        Map<String, Object> found = stored(table);
        assertArrayEquals(new byte[] {0, 1, 2}, (byte[]) found.remove("binary"));
        assertEquals(sent, found);
    }

    @Test
    void nullIsNotStored() {
        table.createEntity(one("a", null, "b", 1));
        assertEquals(Map.of("b", 1), stored(table));
    }
}
