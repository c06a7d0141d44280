// Parallel use of queues: many takers never hold the same message, and nothing is lost.

package sdk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static sdk.QueueSupport.count;
import static sdk.QueueSupport.newQueue;
import static sdk.QueueSupport.receive;

import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueStorageException;
import com.azure.storage.queue.models.SendMessageResult;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class QueueParallelTest {
    private final QueueClient queue = newQueue();

    /** The results of `work(0)` … `work(count - 1)`, done by 16 threads. */
    private static <T> List<T> together(int count, IntFunction<T> work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(16);
        try {
            List<Callable<T>> calls = new ArrayList<>();
            IntStream.range(0, count).forEach(n -> calls.add(() -> work.apply(n)));
            List<T> results = new ArrayList<>();
            for (Future<T> future : threads.invokeAll(calls)) {
                results.add(future.get());
            }
            return results;
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void eachMessageIsTakenOnce() throws Exception {
        together(200, n -> queue.sendMessage(String.valueOf(n)));
        assertEquals(200, count(queue));
        List<List<Integer>> taken = together(16, taker -> {
            List<Integer> mine = new ArrayList<>();
            for (;;) {
                List<QueueMessageItem> messages = receive(queue, List.of(1, 2, 5, 32).get(taker % 4), 300);
                if (messages.isEmpty()) {
                    return mine;
                }
                for (QueueMessageItem message : messages) {
                    mine.add(Integer.valueOf(message.getBody().toString()));
                    queue.deleteMessage(message.getMessageId(), message.getPopReceipt());
                }
            }
        });
        assertEquals(IntStream.range(0, 200).boxed().toList(), taken.stream().flatMap(List::stream).sorted().toList());
        assertEquals(0, count(queue));
    }

    @Test
    void ofTheTakersOfASingleMessageOneGetsIt() throws Exception {
        queue.sendMessage("one");
        assertEquals(1, together(20, n -> receive(queue, 1, 30).size()).stream().mapToInt(Integer::intValue).sum());
    }

    @Test
    void ofThoseWhoDeleteTheSameMessageOneSucceeds() throws Exception {
        SendMessageResult sent = queue.sendMessage("one");
        List<Integer> statuses = together(20, n -> {
            try {
                queue.deleteMessage(sent.getMessageId(), sent.getPopReceipt());
                return 204;
            } catch (QueueStorageException refusal) {
                return refusal.getStatusCode();
            }
        });
        assertEquals(1, statuses.stream().filter(status -> status == 204).count());
        assertEquals(19, statuses.stream().filter(status -> status == 404).count());
    }
}
