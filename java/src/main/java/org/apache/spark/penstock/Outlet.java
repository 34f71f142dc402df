package org.apache.spark.penstock;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.penstock.bridge.Inbox;
import org.penstock.bridge.Sender;
import scala.Tuple2;

/** Where a writer's rows for one reader go: the reader says so when it has started, in this executor or in another. */
final class Outlet {
  /** The way to a reader. */
  interface Sink {
    void put(Object key, UnsafeRow row, TaskWatch watch) throws InterruptedException;

    /** How many bytes the reader has before it, from all its writers. */
    long load();

    /** There is no more. */
    void end();

    /** Waits until the reader has received all. */
    void awaitEnded(TaskWatch watch) throws InterruptedException;

    /** The writing task is over. */
    void close();
  }

  private final Sender sender;
  private Sink sink;
  private boolean closed;

  Outlet(Sender sender) {
    this.sender = sender;
  }

  /** Its writer, which has one for all that it writes to. */
  Sender sender() {
    return sender;
  }

  synchronized void attach(Sink to) {
    if (sink != null) {
      throw new Violation("a second reader of the same partition");
    }
    sink = to;
    if (closed) {
      to.close();
    }
    notifyAll();
  }

  public synchronized Sink sink(TaskWatch watch) throws InterruptedException {
    while (sink == null) {
      wait(TaskWatch.LOOK_MS);
      watch.check();
    }
    return sink;
  }

  /** How many bytes the reader has before it; none before it has started. */
  public synchronized long load() {
    return sink == null ? 0 : sink.load();
  }

  public synchronized void close() {
    closed = true;
    if (sink != null) {
      sink.close();
    }
  }

  /** A reader in this executor gets the rows themselves. */
  record InProcess(Inbox.Channel<Object> channel) implements Sink {
    @Override
    public void put(Object key, UnsafeRow row, TaskWatch watch) throws InterruptedException {
      if (channel.bypass(row)) {
        return;
      }
      Object content = new Tuple2<>(key, row.copy()); // Spark uses it again for the next one
      while (!channel.put(content, row.getSizeInBytes(), TaskWatch.LOOK_MS)) {
        watch.check();
      }
    }

    @Override
    public long load() {
      return channel.load();
    }

    @Override
    public void end() {
      channel.end();
    }

    @Override
    public void awaitEnded(TaskWatch watch) {}

    @Override
    public void close() {}
  }
}
