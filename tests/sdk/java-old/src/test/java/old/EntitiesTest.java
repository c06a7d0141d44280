// Entities: every write of the older client, its types, and the ETags that it sends as `If-Match`.

package old;

import static old.Support.ANY;
import static old.Support.OLD_ETAG;
import static old.Support.assertRefused;
import static old.Support.entity;
import static old.Support.get;
import static old.Support.missingTable;
import static old.Support.newTable;
import static old.Support.values;
import static old.Support.withEtag;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.EntityProperty;
import com.microsoft.azure.storage.table.TableEntity;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TablePayloadFormat;
import com.microsoft.azure.storage.table.TableRequestOptions;
import com.microsoft.azure.storage.table.TableResult;
import com.microsoft.azure.storage.table.TableServiceEntity;
import java.util.Date;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class EntitiesTest {
    /** Writes that take an ETag. */
    enum Conditional {
        MERGE(TableOperation::merge),
        REPLACE(TableOperation::replace),
        DELETE(TableOperation::delete);

        final Function<TableEntity, TableOperation> operation;

        Conditional(Function<TableEntity, TableOperation> operation) {
            this.operation = operation;
        }
    }

    /** An entity as a class, as most users of this client have it. */
    public static class Person extends TableServiceEntity {
        private String name;
        private int age;

        public Person() {}

        Person(String row, String name, int age) {
            super("p", row);
            this.name = name;
            this.age = age;
        }

        public String getName() {
            return name;
        }

        public void setName(String name) {
            this.name = name;
        }

        public int getAge() {
            return age;
        }

        public void setAge(int age) {
            this.age = age;
        }
    }

    @Test
    void insertAnswersWithAnEtagAndTheEntityOnRequest() throws Exception {
        CloudTable table = newTable();
        TableResult quiet = table.execute(TableOperation.insert(entity("a", "n", 1)));
        assertEquals(204, quiet.getHttpStatusCode());
        assertEquals(get(table, "a").getEtag(), quiet.getEtag());
        TableResult echoed = table.execute(TableOperation.insert(entity("b", "n", 2), true));
        assertEquals(201, echoed.getHttpStatusCode());
        DynamicTableEntity answer = echoed.getResultAsType();
        assertEquals(get(table, "b").getEtag(), answer.getEtag());
        assertEquals(get(table, "b").getTimestamp(), answer.getTimestamp());
    }

    @Test
    void aSecondInsertConflicts() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(entity("a", "n", 1)));
        assertRefused(409, "EntityAlreadyExists", () -> table.execute(TableOperation.insert(entity("a", "n", 2))));
        assertEquals(Map.of("n", "1"), values(get(table, "a")));
    }

    @ParameterizedTest
    @EnumSource(names = {"Json", "JsonFullMetadata"})
    void valuesOfEveryTypeComeBack(TablePayloadFormat format) throws Exception {
        CloudTable table = newTable();
        String text = "Grüße, 世界 🙂 'quoted' \"double\" \\ / < >";
        Date time = new Date(1582979696789L);
        UUID guid = UUID.fromString("c9da6455-213d-42c9-9a79-3e9149a57833");
        byte[] bytes = {0, 1, -2, -1};
        table.execute(TableOperation.insert(entity("a", "text", text, "empty", "", "int32", Integer.MIN_VALUE, "int64",
            Long.MAX_VALUE, "fraction", 0.1, "whole", 3.0, "up", Double.POSITIVE_INFINITY, "none", Double.NaN, "yes",
            true, "no", false, "time", time, "guid", guid, "bytes", bytes)));

        TableRequestOptions options = new TableRequestOptions();
        options.setTablePayloadFormat(format);
        TableOperation retrieve = TableOperation.retrieve("p", "a", DynamicTableEntity.class);
        DynamicTableEntity answer = table.execute(retrieve, options, null).getResultAsType();
        Map<String, EntityProperty> found = answer.getProperties();
        assertEquals(13, found.size());
        assertEquals(text, found.get("text").getValueAsString());
        assertEquals("", found.get("empty").getValueAsString());
        assertEquals(Integer.MIN_VALUE, found.get("int32").getValueAsInteger());
        assertEquals(Long.MAX_VALUE, found.get("int64").getValueAsLong());
        assertEquals(0.1, found.get("fraction").getValueAsDouble());
        assertEquals(3.0, found.get("whole").getValueAsDouble());
        assertEquals(Double.POSITIVE_INFINITY, found.get("up").getValueAsDouble());
        assertTrue(Double.isNaN(found.get("none").getValueAsDouble()));
        assertTrue(found.get("yes").getValueAsBoolean());
        assertFalse(found.get("no").getValueAsBoolean());
        assertEquals(time, found.get("time").getValueAsDate());
        assertEquals(guid, found.get("guid").getValueAsUUID());
        assertArrayEquals(bytes, found.get("bytes").getValueAsByteArray());
    }

    @Test
    void anEntityOfAClassIsReadChangedAndSentBack() throws Exception {
        CloudTable table = newTable();
        table.execute(TableOperation.insert(new Person("a", "Zoë", 40)));
        TableOperation retrieve = TableOperation.retrieve("p", "a", Person.class);
        Person first = table.execute(retrieve).getResultAsType();
        Person second = table.execute(retrieve).getResultAsType();
        first.setAge(41);
        table.execute(TableOperation.replace(first));
        second.setName(null); // Null in a merge leaves the value alone.
        assertRefused(412, "UpdateConditionNotSatisfied", () -> table.execute(TableOperation.replace(second)));
        second.setEtag(ANY);
        second.setAge(42);
        table.execute(TableOperation.merge(second));
        Person found = table.execute(retrieve).getResultAsType();
        assertEquals("Zoë", found.getName());
        assertEquals(42, found.getAge());
    }

    @Test
    void replaceDropsPropertiesAndMergeKeepsThem() throws Exception {
        CloudTable table = newTable();
        for (String row : new String[] {"replace", "merge"}) {
            table.execute(TableOperation.insert(entity(row, "old", 1, "both", 1)));
        }
        table.execute(TableOperation.replace(entity("replace", "both", 2)));
        table.execute(TableOperation.merge(entity("merge", "both", 2)));
        assertEquals(Map.of("both", "2"), values(get(table, "replace")));
        assertEquals(Map.of("both", "2", "old", "1"), values(get(table, "merge")));
    }

    @Test
    void insertOrReplaceAndInsertOrMergeOfAnAbsentAndAPresentEntity() throws Exception {
        CloudTable table = newTable();
        TableResult first = table.execute(TableOperation.insertOrReplace(entity("replace", "old", 1)));
        assertEquals(get(table, "replace").getEtag(), first.getEtag());
        TableResult second = table.execute(TableOperation.insertOrReplace(entity("replace", "new", 2)));
        assertNotEquals(first.getEtag(), second.getEtag());
        table.execute(TableOperation.insertOrMerge(entity("merge", "old", 1)));
        table.execute(TableOperation.insertOrMerge(entity("merge", "new", 2)));
        assertEquals(Map.of("new", "2"), values(get(table, "replace")));
        assertEquals(Map.of("old", "1", "new", "2"), values(get(table, "merge")));
    }

    @ParameterizedTest
    @EnumSource
    void theCurrentEtagPassesAndAnOlderOneFails(Conditional write) throws Exception {
        CloudTable table = newTable();
        String first = table.execute(TableOperation.insert(entity("a", "n", 1))).getEtag();
        String second = table.execute(TableOperation.merge(withEtag(entity("a", "n", 2), first))).getEtag();
        for (String old : new String[] {first, OLD_ETAG}) {
            assertRefused(412, "UpdateConditionNotSatisfied",
                "The update condition specified in the request was not satisfied.",
                () -> table.execute(write.operation.apply(withEtag(entity("a", "n", 3), old))));
        }
        assertEquals(Map.of("n", "2"), values(get(table, "a")));
        TableResult third = table.execute(write.operation.apply(withEtag(entity("a", "n", 4), second)));
        assertEquals(204, third.getHttpStatusCode());
        if (write == Conditional.DELETE) {
            assertNull(get(table, "a"));
        } else {
            assertEquals(Map.of("n", "4"), values(get(table, "a")));
            assertEquals(get(table, "a").getEtag(), third.getEtag());
        }
    }

    @ParameterizedTest
    @EnumSource
    void aMissingEntityIsNotFound(Conditional write) throws Exception {
        CloudTable table = newTable();
        assertRefused(404, "ResourceNotFound", "The specified resource does not exist.",
            () -> table.execute(write.operation.apply(entity("missing", "n", 1))));
    }

    @Test
    void everythingOnAMissingTableIsNotFound() throws Exception {
        CloudTable table = missingTable();
        DynamicTableEntity any = entity("a", "n", 1);
        for (TableOperation write : new TableOperation[] {
            TableOperation.insert(any), TableOperation.insertOrReplace(any), TableOperation.insertOrMerge(any),
        }) {
            assertRefused(404, "TableNotFound", "The table specified does not exist.", () -> table.execute(write));
        }
        assertNull(get(table, "a")); // The client makes no difference here.
    }
}
