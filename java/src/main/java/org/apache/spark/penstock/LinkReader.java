package org.apache.spark.penstock;

import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.ShuffleLocationResponse;
import org.apache.spark.SparkEnv;
import org.apache.spark.StreamingShuffleTaskLocation;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.penstock.bridge.Inbox;
import org.penstock.bridge.Sender;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Reads what the writers of a shuffle, in this executor and in others, send to one task. */
final class LinkReader<K, C> extends InboxReader<K, C> {
  private static final int LEAST_BYTES = 1 << 15; // for each writer, so that few rows must be asked for
  private static final long ASK_AGAIN_MS = 5; // twice as long each time: all readers ask the driver
  private static final long ASK_AGAIN_AT_MOST_MS = 40;

  private final Links links;
  private final int shuffle;
  private final int partition;
  private final int writers;
  private final Inbox<Object> inbox;
  private final TaskWatch watch;
  private final List<Incoming> incoming = new CopyOnWriteArrayList<>();
  private volatile boolean over;

  LinkReader(Links links, int shuffle, int writers, Inbox<Object> inbox, TaskContext context) {
    this(links, shuffle, writers, inbox, context, new TaskWatch(context));
  }

  private LinkReader(
      Links links, int shuffle, int writers, Inbox<Object> inbox, TaskContext context, TaskWatch watch) {
    super(inbox, watch);
    this.links = links;
    this.shuffle = shuffle;
    this.partition = context.partitionId();
    this.writers = writers;
    this.inbox = inbox;
    this.watch = watch;
    links.share(shuffle);
    context.addTaskCompletionListener((TaskCompletionListener) done -> {
      over = true;
      incoming.forEach(Incoming::close);
      links.giveBackShare(shuffle);
    });
  }

  /** With room for each of so many writers. */
  static Inbox<Object> inbox(int writers) {
    return new Inbox<>(writers, roomBytes(writers) * writers);
  }

  private static int roomBytes(int writers) {
    return Math.max(HandoverShuffleManager.ROOM_BYTES / Math.max(1, writers), LEAST_BYTES);
  }

  /** Finds all writers, as they start, and asks them for their rows. */
  @Override
  void begin() throws IOException, InterruptedException {
    Set<Long> found = new HashSet<>();
    long waitMs = ASK_AGAIN_MS;
    while (found.size() != writers) {
      Option<ShuffleLocationResponse> known = HandoverShuffleManager.known(shuffle);
      if (known.isDefined()) {
        Map<Object, StreamingShuffleTaskLocation> places =
            CollectionConverters.asJava(known.get().shuffleTaskLocations());
        for (Map.Entry<Object, StreamingShuffleTaskLocation> place : places.entrySet()) {
          if (found.add((Long) place.getKey())) {
            join((Long) place.getKey(), place.getValue());
          }
        }
      }
      watch.check();
      if (found.size() != writers) {
        Thread.sleep(waitMs);
        waitMs = Math.min(2 * waitMs, ASK_AGAIN_AT_MOST_MS);
      }
    }
  }

  private void join(long map, StreamingShuffleTaskLocation place) throws IOException, InterruptedException {
    if (place.executorId().equals(SparkEnv.get().executorId())) {
      Outlet outlet = links.outlet(shuffle, map, partition);
      if (outlet == null) {
        watch.fail("a task of this executor that sends here has failed");
      } else {
        outlet.attach(new Outlet.InProcess(inbox.channel(outlet.sender())));
      }
      return;
    }
    Link link = links.to(place.executorId(), place.host(), place.port());
    Inbox.Channel<Object> channel = inbox.channel(Sender.counted());
    incoming.add(link.open(shuffle, map, partition, channel, roomBytes(writers), watch));
    if (over) { // the task ended meanwhile
      incoming.forEach(Incoming::close);
    }
  }

  @Override
  Object unpacked(Object taken) {
    if (taken instanceof Incoming.Row row) {
      row.from().taken(row.bytes());
      return new Tuple2<>(0, row.content()); // where it goes is known, so its key is not sent
    }
    return taken;
  }
}
