package org.apache.spark.penstock;

import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.ShuffleLocationResponse;
import org.apache.spark.SparkEnv;
import org.apache.spark.StreamingShuffleTaskLocation;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.penstock.bridge.Inbox;
import org.penstock.bridge.Sender;
import org.penstock.bridge.ShuffleMemory;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.jdk.javaapi.CollectionConverters;

/** Reads what the writers of a shuffle, in this executor and in others, send to one task. */
final class LinkReader<K, C> extends AbstractIterator<Product2<K, C>> {
  private static final int ROOM_BYTES = 1 << 18; // before each reader; little, so that back-pressure comes early
  private static final int LEAST_BYTES = 1 << 15; // of it for each writer, so that few rows must be asked for
  private static final long ASK_AGAIN_MS = 5;

  private final Links links;
  private final int shuffle;
  private final int partition;
  private final TaskWatch watch;
  private final ShuffleMemory.Share memory = Handovers.memory().share();
  private final List<Incoming> incoming = new CopyOnWriteArrayList<>();
  private int writers = -1;
  private Inbox<Object> inbox;
  private boolean connected;
  private volatile boolean over;
  private Object next;

  LinkReader(Links links, int shuffle, TaskContext context) {
    this.links = links;
    this.shuffle = shuffle;
    this.partition = context.partitionId();
    this.watch = new TaskWatch(context);
    context.addTaskCompletionListener((TaskCompletionListener) done -> {
      over = true;
      incoming.forEach(Incoming::close);
      memory.close();
    });
  }

  /** Finds all writers, as they start, and asks them for their rows. */
  private void connect() throws IOException, InterruptedException {
    Set<Long> found = new HashSet<>();
    int roomBytes = 0;
    while (found.size() != writers) {
      Option<ShuffleLocationResponse> known =
          SparkEnv.get().streamingShuffleOutputTracker().get().getAvailableShuffleWriterTaskLocations(shuffle);
      if (known.isDefined()) {
        if (inbox == null) {
          writers = known.get().numShuffleWriterTasks();
          roomBytes = Math.max(ROOM_BYTES / Math.max(1, writers), LEAST_BYTES);
          inbox = new Inbox<>(writers, roomBytes * writers);
        }
        Map<Object, StreamingShuffleTaskLocation> places =
            CollectionConverters.asJava(known.get().shuffleTaskLocations());
        for (Map.Entry<Object, StreamingShuffleTaskLocation> place : places.entrySet()) {
          if (found.add((Long) place.getKey())) {
            join((Long) place.getKey(), place.getValue(), roomBytes);
          }
        }
      }
      watch.check();
      if (found.size() != writers) {
        Thread.sleep(ASK_AGAIN_MS);
      }
    }
    connected = true;
  }

  private void join(long map, StreamingShuffleTaskLocation place, int roomBytes)
      throws IOException, InterruptedException {
    if (place.executorId().equals(SparkEnv.get().executorId())) {
      Outlet outlet = links.outlet(shuffle, map, partition);
      if (outlet == null) {
        watch.fail("a task of this executor that sends here has failed");
      } else {
        outlet.attach(new Outlet.InProcess(inbox.channel(new Sender(memory, 0))));
      }
      return;
    }
    Link link = links.to(place.executorId(), place.host(), place.port());
    incoming.add(link.open(shuffle, map, partition, inbox.channel(Sender.counted()), roomBytes, watch));
    if (over) { // the task ended meanwhile
      incoming.forEach(Incoming::close);
    }
  }

  @Override
  public boolean hasNext() {
    try {
      if (!connected) {
        connect();
      }
      while (next == null) {
        Object taken = inbox.take(TaskWatch.LOOK_MS);
        if (taken instanceof Incoming.Row row) {
          row.from().taken(row.bytes());
          next = new Tuple2<>(0, row.content()); // where it goes is known, so its key is not sent
        } else {
          next = taken;
        }
        if (next == null) {
          if (inbox.isOver()) {
            return false;
          }
          watch.check();
        } else if (watch.hasFailed()) {
          watch.check();
        }
      }
      return true;
    } catch (InterruptedException cancelled) {
      throw TaskWatch.cancelled(cancelled);
    } catch (IOException unreachable) {
      throw new IllegalStateException("the tasks that send here cannot be reached", unreachable);
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
