// Tables: create, look for, list and delete, with the answers that the older client turns into booleans.

package old;

import static old.Support.SERVICE;
import static old.Support.assertRefused;
import static old.Support.freshName;
import static old.Support.missingTable;
import static old.Support.newTable;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.azure.storage.ResultContinuation;
import com.microsoft.azure.storage.ResultSegment;
import com.microsoft.azure.storage.table.CloudTable;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TablesTest {
    @Test
    void aCreatedTableExistsUntilItIsDeleted() throws Exception {
        CloudTable table = missingTable();
        assertFalse(table.exists());
        assertTrue(table.createIfNotExists());
        assertTrue(table.exists());
        assertFalse(table.createIfNotExists());
        assertTrue(table.deleteIfExists());
        assertFalse(table.exists());
        assertFalse(table.deleteIfExists());
    }

    @Test
    void aSecondCreateConflicts() throws Exception {
        CloudTable table = newTable();
        assertRefused(409, "TableAlreadyExists", "The table specified already exists.", table::create);
        CloudTable upper = SERVICE.getTableReference(table.getName().toUpperCase());
        assertRefused(409, "TableAlreadyExists", upper::create);
    }

    @Test
    void deleteOfAMissingTableIsNotFound() throws Exception {
        assertRefused(404, "ResourceNotFound", missingTable()::delete);
    }

    @Test
    void aNameThatIsNoneIsRefused() throws Exception {
        assertRefused(400, "InvalidResourceName", SERVICE.getTableReference("no-name")::create);
        assertRefused(400, "OutOfRangeInput", SERVICE.getTableReference("a")::create);
    }

    @Test
    void tablesAreListedByPrefixInPages() throws Exception {
        String start = freshName();
        List<String> names = List.of(start + "a", start + "b", start + "c", start + "d", start + "e");
        for (String name : names) {
            SERVICE.getTableReference(name).create();
        }
        List<String> listed = new ArrayList<>();
        SERVICE.listTables(start).forEach(listed::add);
        assertEquals(names, listed);

        List<String> found = new ArrayList<>();
        List<Integer> sizes = new ArrayList<>();
        ResultContinuation token = null;
        do {
            ResultSegment<String> page = SERVICE.listTablesSegmented(start, 2, token, null, null);
            found.addAll(page.getResults());
            sizes.add(page.getLength());
            token = page.getContinuationToken();
        } while (token != null);
        assertEquals(names, found);
        assertEquals(List.of(2, 2, 1), sizes);
    }
}
