package org.apache.spark.penstock;

import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.Partitioner;
import org.apache.spark.ShuffleLocationResponse;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.MapStatus$;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.streaming.StreamingShuffleHandle;
import org.apache.spark.shuffle.streaming.StreamingShuffleManager;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.TaskCompletionListener;
import org.penstock.bridge.Inbox;
import org.penstock.bridge.Sender;
import org.penstock.bridge.ShuffleMemory;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The streaming shuffle where all of Spark is in one process: a row is handed to the task that reads it, without a socket, a
 * serialiser or a thread in between. With executors in processes of their own it is Spark's.
 *
 * As with Spark's, a shuffle belongs to one batch, its tasks all run at the same time, and when one of them fails Spark
 * ends the others: whoever waits here looks out for that.
 */
public class HandoverShuffleManager extends StreamingShuffleManager {
  static final int ROOM_BYTES = 1 << 18; // before each reader; little, so that back-pressure comes early
  private static final int AHEAD_BYTES = 1 << 17; // of a writer beyond that, so that one slow reader does not stop it at once
  private static final int BYTES_OF_OTHERS = 64; // rows of whatever is not a row of Spark SQL
  private static final long LOOK_MS = 100;
  private static final int LOOKS = 50;

  private final ConcurrentHashMap<Integer, Handover> shuffles = new ConcurrentHashMap<>();

  /** One shuffle of one batch. */
  private final class Handover {
    private final int id;
    private final List<Inbox<Object>> inboxes = new ArrayList<>();
    private final AtomicInteger tasksLeft;
    private final ShuffleMemory.Share memory = Handovers.memory().share();

    Handover(int id, int writers, int readers) {
      this.id = id;
      this.tasksLeft = new AtomicInteger(writers + readers);
      for (int reader = 0; reader < readers; reader++) {
        inboxes.add(new Inbox<>(writers, ROOM_BYTES));
      }
    }

    /** It is forgotten with the last of its tasks, however they end. */
    void countOff(TaskContext context) {
      context.addTaskCompletionListener((TaskCompletionListener) done -> {
        if (tasksLeft.decrementAndGet() == 0) {
          forget(id);
        }
      });
    }
  }

  private void forget(int id) {
    Handover known = shuffles.remove(id);
    if (known != null) {
      known.memory.close();
    }
  }

  /** How many shuffles of this process have tasks that have not ended: none when no query runs. */
  public static int inUse() {
    return ((HandoverShuffleManager) SparkEnv.get().pipelinedShuffleManager()).shuffles.size();
  }

  private static boolean isOneProcess() {
    return SparkInternals.isDriver(SparkEnv.get().executorId());
  }

  private Handover handover(StreamingShuffleHandle<?, ?, ?> handle) {
    int id = handle.shuffleId();
    return shuffles.computeIfAbsent(
        id, unknown -> new Handover(id, writers(id), handle.dependency().partitioner().numPartitions()));
  }

  /** Spark registers a shuffle before it starts its tasks. */
  private static int writers(int shuffle) {
    for (int look = 0; look < LOOKS; look++) {
      Option<ShuffleLocationResponse> known =
          SparkEnv.get().streamingShuffleOutputTracker().get().getAvailableShuffleWriterTaskLocations(shuffle);
      if (known.isDefined()) {
        return known.get().numShuffleWriterTasks();
      }
      try {
        Thread.sleep(LOOK_MS);
      } catch (InterruptedException cancelled) {
        Thread.currentThread().interrupt();
        break;
      }
    }
    throw new IllegalStateException("Spark does not say how many tasks write shuffle " + shuffle);
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    if (!isOneProcess()) {
      return super.getWriter(handle, mapId, context, metrics);
    }
    @SuppressWarnings("unchecked")
    StreamingShuffleHandle<K, V, ?> shuffle = (StreamingShuffleHandle<K, V, ?>) handle;
    Handover handover = handover(shuffle);
    handover.countOff(context);
    Handovers.writes(context, partition -> handover.inboxes.get(partition).load());
    return new Writer<>(handover, shuffle.dependency().partitioner(), mapId, context);
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(
      ShuffleHandle handle,
      int startMap,
      int endMap,
      int startPartition,
      int endPartition,
      TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    if (!isOneProcess()) {
      return super.getReader(handle, startMap, endMap, startPartition, endPartition, context, metrics);
    }
    Handover handover = handover((StreamingShuffleHandle<?, ?, ?>) handle);
    handover.countOff(context);
    Inbox<Object> inbox = handover.inboxes.get(context.partitionId());
    Handovers.reads(context, inbox);
    return () -> new Reader<>(inbox, context);
  }

  @Override
  public boolean unregisterShuffle(int shuffleId) {
    forget(shuffleId); // of a batch whose tasks were not all started
    return super.unregisterShuffle(shuffleId);
  }

  /** Ends this thread's work if Spark has ended its task. */
  static void check(TaskContext context) {
    context.killTaskIfInterrupted();
    if (context.isCompleted() || context.isFailed()) {
      throw new IllegalStateException("the task has ended");
    }
  }

  private static final class Writer<K, V> extends ShuffleWriter<K, V> {
    private final List<Inbox.Channel<Object>> channels = new ArrayList<>();
    private final Partitioner partitioner;
    private final long mapId;
    private final TaskContext context;

    Writer(Handover handover, Partitioner partitioner, long mapId, TaskContext context) {
      this.partitioner = partitioner;
      this.mapId = mapId;
      this.context = context;
      Sender sender = new Sender(handover.memory, AHEAD_BYTES);
      for (Inbox<Object> inbox : handover.inboxes) {
        channels.add(inbox.channel(sender));
      }
    }

    @Override
    public void write(Iterator<Product2<K, V>> records) {
      while (records.hasNext()) {
        Product2<K, V> record = records.next();
        Object content = record._2();
        int bytes = BYTES_OF_OTHERS;
        if (content instanceof UnsafeRow row) { // Spark uses it again for the next one
          content = row.copy();
          bytes = row.getSizeInBytes();
        }
        put(channels.get(partitioner.getPartition(record._1())), new Tuple2<>(record._1(), content), bytes);
      }
      channels.forEach(Inbox.Channel::end);
    }

    private void put(Inbox.Channel<Object> channel, Object content, int bytes) {
      try {
        while (!channel.put(content, bytes, LOOK_MS)) {
          check(context);
        }
      } catch (InterruptedException cancelled) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("the task was cancelled", cancelled);
      }
    }

    /** Nobody ever asks Spark where the output of this task is. */
    @Override
    public Option<MapStatus> stop(boolean success) {
      return Option.apply(
          MapStatus$.MODULE$.apply(
              SparkEnv.get().blockManager().shuffleServerId(), getPartitionLengths(), mapId, 0L));
    }

    @Override
    public long[] getPartitionLengths() {
      return new long[channels.size()];
    }
  }

  private static final class Reader<K, C> extends AbstractIterator<Product2<K, C>> {
    private final Inbox<Object> inbox;
    private final TaskContext context;
    private Object next;

    Reader(Inbox<Object> inbox, TaskContext context) {
      this.inbox = inbox;
      this.context = context;
    }

    @Override
    public boolean hasNext() {
      try {
        while (next == null) {
          next = inbox.take(LOOK_MS);
          if (next == null) {
            if (inbox.isOver()) {
              return false;
            }
            check(context);
          }
        }
        return true;
      } catch (InterruptedException cancelled) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("the task was cancelled", cancelled);
      }
    }

    @Override
    @SuppressWarnings("unchecked")
    public Product2<K, C> next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      Product2<K, C> taken = (Product2<K, C>) next;
      next = null;
      return taken;
    }
  }
}
