package org.apache.spark.penstock;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntToLongFunction;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.TaskCompletionListener;
import org.penstock.bridge.Inbox;
import org.penstock.bridge.LargeRows;
import org.penstock.bridge.ShuffleMemory;
import scala.Product2;

/** What a task of Penstock may ask of the shuffle around it, where that is ours. */
public final class Handovers {
  private Handovers() {}

  private static final String QUEUES = "spark.penstock.queues";
  private static final String SEEN = "seen"; // what the queues hold
  private static final String COUNTED = "counted"; // by what senders and receivers say they did
  private static final String MEMORY = "spark.penstock.shuffle.memory";
  private static final String MEMORY_BY_DEFAULT = "128m";
  private static final int PAYLOAD = 1; // the column of a row that holds its envelopes

  private static volatile ShuffleMemory memory;
  private static volatile long largeRows;
  private static final ConcurrentHashMap<Long, Inbox<Object>> READ = new ConcurrentHashMap<>();
  private static final ConcurrentHashMap<Long, Written> WRITTEN = new ConcurrentHashMap<>();

  /** How many bytes each of so many partitions has before it. */
  private record Written(int partitions, IntToLongFunction loads) {}

  /** This is the inbox of a task, as long as it runs. */
  public static void reads(TaskContext context, Inbox<Object> inbox) {
    READ.put(context.taskAttemptId(), inbox);
    context.addTaskCompletionListener((TaskCompletionListener) done -> READ.remove(done.taskAttemptId()));
  }

  private static boolean areSeen(String queues) {
    if (!queues.equals(SEEN) && !queues.equals(COUNTED)) {
      throw new IllegalArgumentException(
          QUEUES + " is \"" + queues + "\"; it may be \"" + SEEN + "\" or \"" + COUNTED + "\"");
    }
    return queues.equals(SEEN);
  }

  /** The inbox that a task reads from; null where the shuffle is Spark's, or where its queues are not to be looked at. */
  public static Inbox<Object> inbox(TaskContext context) {
    return areSeen(SparkEnv.get().conf().get(QUEUES, SEEN)) ? READ.get(context.taskAttemptId()) : null;
  }

  /** The reader of a task's inbox tells how many bytes it has taken and not done with. */
  public static void setBehind(TaskContext context, LongSupplier bytes) {
    Inbox<Object> inbox = READ.get(context.taskAttemptId());
    if (inbox != null) {
      inbox.setBehind(bytes);
    }
  }

  /** Rows for which a task waits may be taken by their writers' threads in this way. */
  public static void setShortcut(TaskContext context, Inbox.Shortcut<Object> way) {
    Inbox<Object> inbox = READ.get(context.taskAttemptId());
    if (inbox != null) {
      inbox.setShortcut(way);
    }
  }

  /** A task writes to a shuffle of which it is known how many bytes each partition has before it. */
  static void writes(TaskContext context, int partitions, IntToLongFunction loads) {
    WRITTEN.put(context.taskAttemptId(), new Written(partitions, loads));
    context.addTaskCompletionListener((TaskCompletionListener) done -> WRITTEN.remove(done.taskAttemptId()));
  }

  /** How many bytes each partition has before it that a task writes to: as good as none where nobody knows. */
  public static IntToLongFunction loads(TaskContext context) {
    Written known = WRITTEN.get(context.taskAttemptId());
    return known == null ? partition -> 0 : known.loads();
  }

  /** Whether any of them has more than that before it; nobody knows of one where the shuffle is Spark's. */
  public static boolean anyHasMore(TaskContext context, long bytes) {
    Written known = WRITTEN.get(context.taskAttemptId());
    return known != null && IntStream.range(0, known.partitions()).anyMatch(one -> known.loads().applyAsLong(one) > bytes);
  }

  /** What all shuffles of this process may hold together, beyond the room before each reader. */
  static synchronized ShuffleMemory memory() {
    long limitBytes = SparkEnv.get().conf().getSizeAsBytes(MEMORY, MEMORY_BY_DEFAULT);
    if (memory == null || memory.limitBytes() != limitBytes) { // another Spark was started in this process
      memory = new ShuffleMemory(limitBytes);
    }
    return memory;
  }

  /** What large rows from other executors may hold besides. */
  static void setLargeRows(long bytes) {
    largeRows = bytes;
  }

  /**
   * Bytes of all rows that wait in this process, for tasks or for room in other executors, and of large ones that may come from
   * there or are under way.
   */
  public static long heldBytes() {
    long largeBytes = LargeRows.heldBytes(); // before the inboxes: one that arrives meanwhile counts once
    return largeBytes
        + Outgoing.waitingBytesOfAll()
        + READ.values().stream()
            .mapToLong(inbox -> largeBytes == 0 ? inbox.bytes() : inbox.bytes(row -> !isLarge(row, inbox)))
            .sum();
  }

  /** Whether a row in an inbox is one of those that `LargeRows` counts. */
  private static boolean isLarge(Object content, Inbox<Object> inbox) {
    return content instanceof Incoming.Row came && Incoming.isLarge(came.bytes(), inbox.roomBytesOfChannel());
  }

  /** What they may be at most, save that each shuffle may have one row more than that; 0 before there is any shuffle. */
  public static long limitBytes() {
    ShuffleMemory known = memory; // Spark may be gone when this is asked
    if (known == null) {
      return 0;
    }
    return known.limitBytes() + largeRows + READ.values().stream().mapToLong(Inbox::roomBytes).sum();
  }

  private static UnsafeRow row(Object content) {
    if (content instanceof UnsafeRow row) {
      return row;
    }
    return content instanceof Incoming.Row came ? came.content() : (UnsafeRow) ((Product2<?, ?>) content)._2();
  }

  /** The bundle of envelopes in a row that is, or would be, in an inbox, where it lies. */
  public static ByteBuffer bundle(Object content) {
    UnsafeRow row = row(content);
    long place = row.getLong(PAYLOAD); // of a column of bytes: where it begins in the row, and how long it is
    return ByteBuffer.wrap((byte[]) row.getBaseObject(), (int) (place >> 32), (int) place)
        .slice()
        .order(ByteOrder.LITTLE_ENDIAN);
  }
}
