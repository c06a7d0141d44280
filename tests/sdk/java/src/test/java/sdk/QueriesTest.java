// Queries: filters over every type, select, and refusals. The SDK has no filter builder: filters are text.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static sdk.Support.assertRefused;
import static sdk.Support.entity;
import static sdk.Support.newTable;
import static sdk.Support.plain;
import static sdk.Support.query;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class QueriesTest {
    private static final UUID GUID = UUID.fromString("a455c695-df98-5678-aaaa-81d3367e5a34");
    private static final TableClient TABLE = newTable();

    @BeforeAll
    static void fill() {
        OffsetDateTime noon = OffsetDateTime.parse("2020-06-01T12:00:00Z");
        TABLE.createEntity(entity("p", "a", "i", 1, "d", 1.5, "s", "apple", "b", true, "t", noon));
        TABLE.createEntity(entity("p", "b", "i", 2, "d", 2.5, "s", "O'Brien", "b", false, "g", GUID));
        TABLE.createEntity(entity("p", "c", "i", 3, "d", 3.0, "s", "Banana", "x", new byte[] {1, 2, -1}));
        TABLE.createEntity(entity("p", "d", "i", -4, "s", "", "l", 1L << 40));
        TABLE.createEntity(entity("p", "e", "s", "zürich 😀", "l", 3L, "v", "text"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', emptyValue = "", value = {
        "i eq 2 | b",
        "i ne 2 | acd",
        "i gt 2 | c",
        "i ge 2 | bc",
        "i lt 2 | ad",
        "i le 2 | abd",
        "not (i eq 2) | acde",
        "nothing ne 1 | ``",
        "not (nothing eq 1) | abcde",
        "d eq 3 | c",
        "d gt 1.5 | bc",
        "l eq 1099511627776L | d",
        "l eq 3 | e",
        "l gt 3L | d",
        "i eq 3L | ``",
        "i lt 3L | abcd",
        "v ne 5 | e",
        "v lt 5 | e",
        "s eq 'O''Brien' | b",
        "s lt 'a' | bcd",
        "s eq '' | d",
        "s eq 'zürich 😀' | e",
        "b | a",
        "not b | bcde",
        "true | abcde",
        "false | ``",
        "t gt datetime'2020-06-01T11:59:59.9999999Z' | a",
        "g eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34' | b",
        "x eq X'0102ff' | c",
        "x eq binary'0102FF' | c",
        "PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'd' | bc",
        "'c' lt RowKey | de",
        "RowKey eq 'e' or RowKey eq 'a' | ae",
        "i eq 1 or i eq 2 and d eq 9.0 | a",
        "(i eq 1 or i eq 2) and d eq 2.5 | b",
    })
    void filter(String filter, String expected) {
        List<TableEntity> found = query(TABLE, filter);
        assertEquals(expected, found.stream().map(TableEntity::getRowKey).collect(Collectors.joining()));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
        "aaa bbb ccc | 400 | InvalidInput",
        "i eq | 400 | InvalidInput",
        "i eq 'open | 400 | InvalidInput",
        "(i eq 1 | 400 | InvalidInput",
        "i EQ 1 | 400 | InvalidInput",
        "i eq 5454161346626 | 400 | InvalidInput",
        "1 | 400 | InvalidInput",
        "i eq d | 501 | NotImplemented",
        "1 eq 1 | 501 | NotImplemented",
        "startswith(s,'a') | 501 | NotImplemented",
    })
    void refusedFilter(String filter, int status, String code) {
        assertRefused(status, code, () -> query(TABLE, filter));
    }

    @Test
    void selectReturnsExactlyTheChosenPropertiesAndNullWhereAnEntityLacksOne() {
        ListEntitiesOptions options = new ListEntitiesOptions().setFilter("i gt 0").setSelect(List.of("RowKey", "g"));
        List<TableEntity> found = query(TABLE, options);
        Map<String, Object> without = new HashMap<>();
        without.put("g", null);
        assertEquals(List.of(without, Map.of("g", GUID), without), found.stream().map(Support::plain).toList());
        assertEquals(List.of("a", "b", "c"), found.stream().map(TableEntity::getRowKey).toList());
        found.forEach(entity -> assertNotNull(entity.getETag()));
    }

    @Test
    void selectDoesNotHidePropertiesFromTheFilter() {
        List<TableEntity> found =
            query(TABLE, new ListEntitiesOptions().setFilter("i gt 1").setSelect(List.of("s")));
        assertEquals(List.of(Map.of("s", "O'Brien"), Map.of("s", "Banana")),
            List.of(plain(found.get(0)), plain(found.get(1))));
    }
}
