package org.apache.spark.penstock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.ShuffleLocationResponse;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * The streaming shuffle where all of Spark is in one process: a row is handed to the task that reads it, without a socket, a
 * serialiser or a thread in between. With executors in processes of their own it is Spark's, and rows are sealed.
 *
 * As with Spark's, a shuffle belongs to one batch, its tasks all run at the same time, and when one of them fails Spark
 * ends the others: whoever waits here looks out for that.
 */
public class HandoverShuffleManager extends StreamingShuffleManager {
  static final int ROOM_BYTES = 1 << 18; // before each reader; little, so that back-pressure comes early
  static final int AHEAD_BYTES = 1 << 17; // of a writer beyond that, so that one slow reader does not stop it at once
  private static final int BYTES_OF_OTHERS = 64; // rows of whatever is not a row of Spark SQL
  private static final int LOOKS = 50;
  private static final int NO_SHUFFLE = -1;

  private static final Logger LOG = LoggerFactory.getLogger(HandoverShuffleManager.class);

  private final ConcurrentHashMap<Integer, Handover> shuffles = new ConcurrentHashMap<>();
  private boolean tried;
  private String problem;

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

  /** What Spark knows of the tasks that write a shuffle. */
  static Option<ShuffleLocationResponse> known(int shuffle) {
    return SparkEnv.get().streamingShuffleOutputTracker().get().getAvailableShuffleWriterTaskLocations(shuffle);
  }

  /** Spark registers a shuffle before it starts its tasks. */
  static int writers(int shuffle) {
    for (int look = 0; look < LOOKS; look++) {
      Option<ShuffleLocationResponse> known = known(shuffle);
      if (known.isDefined()) {
        return known.get().numShuffleWriterTasks();
      }
      try {
        Thread.sleep(TaskWatch.LOOK_MS);
      } catch (InterruptedException cancelled) {
        Thread.currentThread().interrupt();
        break;
      }
    }
    throw new IllegalStateException("Spark does not say how many tasks write shuffle " + shuffle);
  }

  /** How the rows of a shuffle get from those who write them to those who read them. */
  interface Way {
    <K, V> ShuffleWriter<K, V> writer(StreamingShuffleHandle<K, V, ?> shuffle, long mapId, TaskContext context);

    <K, C> ShuffleReader<K, C> reader(StreamingShuffleHandle<?, ?, ?> shuffle, TaskContext context);
  }

  private final class HandedOver implements Way {
    @Override
    public <K, V> ShuffleWriter<K, V> writer(
        StreamingShuffleHandle<K, V, ?> shuffle, long mapId, TaskContext context) {
      Handover handover = handover(shuffle);
      handover.countOff(context);
      Handovers.writes(context, handover.inboxes.size(), partition -> handover.inboxes.get(partition).load());
      return new Writer<>(handover, shuffle, mapId, context);
    }

    @Override
    public <K, C> ShuffleReader<K, C> reader(StreamingShuffleHandle<?, ?, ?> shuffle, TaskContext context) {
      Handover handover = handover(shuffle);
      handover.countOff(context);
      Inbox<Object> inbox = handover.inboxes.get(context.partitionId());
      Handovers.reads(context, inbox);
      return () -> new InboxReader<>(inbox, new TaskWatch(context));
    }
  }

  /** Null: Spark's own. */
  Way way(ShuffleHandle handle) {
    return isOneProcess() && problem() == null ? new HandedOver() : null;
  }

  /** Why nothing can go over this shuffle, so that it is Spark's own; null if it can. */
  final synchronized String problem() {
    if (!tried) {
      setProblem(found());
    }
    return problem;
  }

  final synchronized void setProblem(String why) {
    tried = true;
    problem = why;
    if (why != null) {
      LOG.error("Penstock's shuffle cannot be used, Spark's own is: {}", why);
    }
  }

  /** What is found wrong when it is tried for the first time. */
  String found() {
    return trial();
  }

  /** One row is handed over, and what a task asks of Spark around that is asked: it is there and works. */
  public static String trial() {
    try {
      TaskWatch watch = new TaskWatch(TaskContext$.MODULE$.empty());
      watch.check();
      UnsafeRow row = new UnsafeRow(0);
      row.pointTo(new byte[0], 0);
      Inbox<Object> inbox = new Inbox<>(1, ROOM_BYTES);
      inbox.channel(Sender.counted()).put(new Tuple2<>(0, row.copy()), row.getSizeInBytes(), 0);
      new InboxReader<>(inbox, watch).next();
      known(NO_SHUFFLE);
      PartitionWriter.status(new long[1], 0);
      return null;
    } catch (InterruptedException cancelled) {
      throw TaskWatch.cancelled(cancelled);
    } catch (RuntimeException | LinkageError wrong) {
      return "rows cannot be handed over inside the process: " + wrong;
    }
  }

  @Override
  @SuppressWarnings("unchecked")
  public final <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    Way way = way(handle);
    StreamingShuffleHandle<K, V, ?> shuffle = (StreamingShuffleHandle<K, V, ?>) handle;
    return way == null
        ? Sealed.writer(shuffle, super.getWriter(handle, mapId, context, metrics))
        : way.writer(shuffle, mapId, context);
  }

  @Override
  public final <K, C> ShuffleReader<K, C> getReader(
      ShuffleHandle handle,
      int startMap,
      int endMap,
      int startPartition,
      int endPartition,
      TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    Way way = way(handle);
    StreamingShuffleHandle<?, ?, ?> shuffle = (StreamingShuffleHandle<?, ?, ?>) handle;
    return way == null
        ? Sealed.reader(
            shuffle,
            startPartition,
            super.getReader(handle, startMap, endMap, startPartition, endPartition, context, metrics))
        : way.reader(shuffle, context);
  }

  @Override
  public boolean unregisterShuffle(int shuffleId) {
    forget(shuffleId); // of a batch whose tasks were not all started
    return super.unregisterShuffle(shuffleId);
  }

  private static final class Writer<K, V> extends PartitionWriter<K, V> {
    private final List<Inbox.Channel<Object>> channels = new ArrayList<>();
    private final TaskWatch watch;

    Writer(Handover handover, StreamingShuffleHandle<K, V, ?> shuffle, long mapId, TaskContext context) {
      super(shuffle, mapId);
      this.watch = new TaskWatch(context);
      Sender sender = new Sender(handover.memory, AHEAD_BYTES);
      for (Inbox<Object> inbox : handover.inboxes) {
        channels.add(inbox.channel(sender));
      }
    }

    @Override
    public void write(Iterator<Product2<K, V>> records) {
      try {
        while (records.hasNext()) {
          Product2<K, V> record = records.next();
          Object content = record._2();
          int bytes = BYTES_OF_OTHERS;
          Inbox.Channel<Object> channel = channels.get(partition(record._1()));
          if (content instanceof UnsafeRow row) {
            if (channel.bypass(row)) {
              continue;
            }
            content = row.copy(); // Spark uses it again for the next one
            bytes = row.getSizeInBytes();
          }
          put(channel, new Tuple2<>(record._1(), content), bytes);
        }
      } catch (InterruptedException cancelled) {
        throw TaskWatch.cancelled(cancelled);
      }
      channels.forEach(Inbox.Channel::end);
    }

    private void put(Inbox.Channel<Object> channel, Object content, int bytes) throws InterruptedException {
      while (!channel.put(content, bytes, TaskWatch.LOOK_MS)) {
        watch.check();
      }
    }
  }
}
