package org.penstock.bridge;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Rows on their way to one reader inside one JVM, in the order in which they came. Every writer has a channel with room of
 * its own, so a fast one neither crowds the others out nor waits for their rows; a channel that is empty takes any row.
 */
public final class Inbox<T> {
  private record Row<T>(T content, Channel<T> channel, int bytes, long putNs) {}

  /** Sees a row that waits. */
  public interface Visitor<T> {
    void row(T content, long putNs);
  }

  /** From one writer. */
  public static final class Channel<T> {
    private final Inbox<T> inbox;
    private final Condition room;
    private int bytes;
    private boolean waits;

    private Channel(Inbox<T> inbox) {
      this.inbox = inbox;
      this.room = inbox.lock.newCondition();
    }

    /** Hands a row over; false if there was no room for it in time. */
    public boolean put(T content, int bytes, long timeoutMs) throws InterruptedException {
      return inbox.put(this, content, bytes, timeoutMs);
    }

    /** The writer has no more. */
    public void end() {
      inbox.ended();
    }
  }

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition news = lock.newCondition();
  private final ArrayDeque<Row<T>> rows = new ArrayDeque<>();
  private final int roomBytes;
  private int writersLeft;
  private boolean readerWaits;
  private long takenPutNs;

  /** `roomBytes` is what all channels together may hold. */
  public Inbox(int writers, int roomBytes) {
    this.writersLeft = writers;
    this.roomBytes = roomBytes / Math.max(1, writers);
  }

  public Channel<T> channel() {
    return new Channel<>(this);
  }

  private boolean put(Channel<T> channel, T content, int bytes, long timeoutMs) throws InterruptedException {
    lock.lock();
    try {
      long leftNs = TimeUnit.MILLISECONDS.toNanos(timeoutMs);
      while (channel.bytes > 0 && channel.bytes + bytes > roomBytes) {
        if (leftNs <= 0) {
          return false;
        }
        channel.waits = true;
        leftNs = channel.room.awaitNanos(leftNs);
        channel.waits = false;
      }
      channel.bytes += bytes;
      rows.add(new Row<>(content, channel, bytes, System.nanoTime()));
      wakeReader();
      return true;
    } finally {
      lock.unlock();
    }
  }

  private void ended() {
    lock.lock();
    try {
      writersLeft--;
      wakeReader();
    } finally {
      lock.unlock();
    }
  }

  private void wakeReader() {
    if (readerWaits) {
      news.signal();
    }
  }

  /** The next row; null if none came in time, or none will come any more. */
  public T take(long timeoutMs) throws InterruptedException {
    lock.lock();
    try {
      long leftNs = TimeUnit.MILLISECONDS.toNanos(timeoutMs);
      while (rows.isEmpty() && writersLeft > 0 && leftNs > 0) {
        readerWaits = true;
        leftNs = news.awaitNanos(leftNs);
        readerWaits = false;
      }
      Row<T> row = rows.poll();
      if (row == null) {
        return null;
      }
      takenPutNs = row.putNs();
      row.channel().bytes -= row.bytes();
      if (row.channel().waits) {
        row.channel().room.signal();
      }
      return row.content();
    } finally {
      lock.unlock();
    }
  }

  /** For the reader: when the row that it took last had been put in. */
  public long takenPutNs() {
    return takenPutNs;
  }

  /** Shows all rows that wait, the oldest first. Nobody puts or takes meanwhile, so this is for now and then. */
  public void visit(Visitor<T> visitor) {
    lock.lock();
    try {
      rows.forEach(row -> visitor.row(row.content(), row.putNs()));
    } finally {
      lock.unlock();
    }
  }

  /** Whether all writers have ended, and all they wrote was taken. */
  public boolean isOver() {
    lock.lock();
    try {
      return writersLeft == 0 && rows.isEmpty();
    } finally {
      lock.unlock();
    }
  }
}
