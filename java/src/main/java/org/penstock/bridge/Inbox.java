package org.penstock.bridge;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Predicate;

/**
 * Rows on their way to one reader inside one JVM, in the order in which they came. Every writer has a channel with room of
 * its own, so a fast one neither crowds the others out nor waits for their rows. What a channel holds beyond its room comes
 * out of what its writer may have waiting (`Sender`); an empty channel takes any row for which there is memory.
 */
public final class Inbox<T> {
  private static final long LOOK_FOR_MEMORY_NS = 10_000_000L; // others give it back, and do not know who waits

  private record Row<T>(T content, Channel<T> channel, int bytes, long putNs) {}

  /** Takes a row in the thread of its writer if nobody has to wait for that. */
  public interface Shortcut<T> {
    boolean take(T content) throws InterruptedException;
  }

  /** Sees a row that waits. */
  public interface Visitor<T> {
    void row(T content, long putNs);
  }

  /** From one writer. */
  public static final class Channel<T> {
    private final Inbox<T> inbox;
    private final Sender sender;
    private final Condition room;
    private long bytes;
    private boolean waits;

    private Channel(Inbox<T> inbox, Sender sender) {
      this.inbox = inbox;
      this.sender = sender;
      this.room = inbox.lock.newCondition();
    }

    /** Hands a row over; false if there was no room for it in time. */
    public boolean put(T content, int bytes, long timeoutMs) throws InterruptedException {
      return inbox.put(this, content, bytes, timeoutMs);
    }

    /**
     * Hands a row over without waking the reader; false if it has to be put. A reader that waits has done with all that came
     * before, so the rows of a channel keep their order.
     */
    public boolean bypass(T content) throws InterruptedException {
      Shortcut<T> way = inbox.shortcut;
      return way != null && inbox.isAwaited() && way.take(content);
    }

    /** What the reader has before it, of all its writers. */
    public long load() {
      return inbox.load();
    }

    /** The writer has no more. */
    public void end() {
      inbox.ended();
    }

    private long beyond(long held) {
      return Math.max(0, held - inbox.roomBytes);
    }

    private boolean takes(int more) {
      long beyond = beyond(bytes);
      long wanted = beyond(bytes + more) - beyond;
      return wanted == 0 || (bytes == 0 ? sender.take(wanted) : sender.mayWait(beyond, wanted));
    }

    private void taken(int less) {
      long before = beyond(bytes);
      bytes -= less;
      if (before > 0) {
        sender.giveBack(before - beyond(bytes));
      }
    }
  }

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition news = lock.newCondition();
  private final ArrayDeque<Row<T>> rows = new ArrayDeque<>();
  private final int roomBytes; // of each channel
  private final int roomBytesOfAll;
  private volatile long bytes; // of all channels
  private int writersLeft;
  private boolean readerWaits;
  private long takenPutNs;
  private volatile LongSupplier behind = () -> 0;
  private volatile Shortcut<T> shortcut;

  /** `roomBytes` is what all channels together may hold without asking for more. */
  public Inbox(int writers, int roomBytes) {
    this.writersLeft = writers;
    this.roomBytes = roomBytes / Math.max(1, writers);
    this.roomBytesOfAll = roomBytes;
  }

  public Channel<T> channel(Sender sender) {
    return new Channel<>(this, sender);
  }

  private boolean put(Channel<T> channel, T content, int size, long timeoutMs) throws InterruptedException {
    lock.lock();
    try {
      long leftNs = TimeUnit.MILLISECONDS.toNanos(timeoutMs);
      while (!channel.takes(size)) {
        if (leftNs <= 0) {
          return false;
        }
        long waitNs = channel.bytes == 0 ? Math.min(leftNs, LOOK_FOR_MEMORY_NS) : leftNs;
        channel.waits = true;
        leftNs -= waitNs - channel.room.awaitNanos(waitNs);
        channel.waits = false;
      }
      channel.bytes += size;
      bytes += size;
      rows.add(new Row<>(content, channel, size, System.nanoTime()));
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

  private boolean isAwaited() {
    lock.lock();
    try {
      return readerWaits && rows.isEmpty();
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
        try {
          leftNs = news.awaitNanos(leftNs);
        } finally {
          readerWaits = false;
        }
      }
      Row<T> row = rows.poll();
      if (row == null) {
        return null;
      }
      takenPutNs = row.putNs();
      bytes -= row.bytes();
      row.channel().taken(row.bytes());
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

  /** What all channels together may hold without asking for more. */
  public int roomBytes() {
    return roomBytesOfAll;
  }

  /** What each of them may. */
  public int roomBytesOfChannel() {
    return roomBytes;
  }

  /** Of all rows that wait. */
  public long bytes() {
    return bytes;
  }

  /** Of those of them that are wanted. Nobody puts or takes meanwhile, so this is for now and then. */
  public long bytes(Predicate<T> isWanted) {
    lock.lock();
    try {
      return rows.stream().filter(row -> isWanted.test(row.content())).mapToLong(Row::bytes).sum();
    } finally {
      lock.unlock();
    }
  }

  /** From now on the reader tells how many bytes it has taken and not done with. */
  public void setBehind(LongSupplier bytes) {
    behind = bytes;
  }

  /** From now on rows for which the reader waits may go this way. */
  public void setShortcut(Shortcut<T> way) {
    shortcut = way;
  }

  /** What the reader has before it: the rows that wait, and what it is not done with. */
  public long load() {
    return bytes + behind.getAsLong();
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
