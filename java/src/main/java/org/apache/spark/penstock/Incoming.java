package org.apache.spark.penstock;

import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.penstock.bridge.Inbox;
import org.penstock.bridge.LargeRows;

/**
 * A channel from a writer in another executor, where it is read. The writer sends no more than there is room for: bytes that
 * were read are given back once they are half of the room, and rows larger than that are asked for.
 */
final class Incoming {
  /** A row in an inbox; what takes it out gives its room back. */
  record Row(UnsafeRow content, int bytes, Incoming from) {}

  private final Link link;
  private final int id;
  private final int shuffle;
  private final Inbox.Channel<Object> inbox;
  private final int roomBytes;
  private final LargeRows largeRows;
  private final TaskWatch watch;
  private long sequence;
  private UnsafeRow partial;
  private byte[] content;
  private int filled;
  private int inboxBytes;
  private int owedBytes;
  private int askedBytes;
  private int grantedBytes;
  private long largeBytes;
  private boolean ended;
  private boolean closed;
  // What the writer is told, of the connection's thread alone.
  private long receivedBytes;
  private long toldReceivedBytes = -1;
  private long toldLoadBytes;
  private boolean isWatched;

  Incoming(
      Link link,
      int id,
      int shuffle,
      Inbox.Channel<Object> inbox,
      int roomBytes,
      LargeRows largeRows,
      TaskWatch watch) {
    this.link = link;
    this.id = id;
    this.shuffle = shuffle;
    this.inbox = inbox;
    this.roomBytes = roomBytes;
    this.largeRows = largeRows;
    this.watch = watch;
  }

  static boolean isLarge(int bytes, int roomBytes) {
    return bytes > roomBytes / 2;
  }

  void receive(byte kind, ByteBuffer frame) {
    switch (kind) {
      case Frames.ROW -> {
        inOrder(frame.getLong());
        begin(frame.getInt(), frame.getInt());
        fill(frame);
      }
      case Frames.MORE -> {
        inOrder(frame.getLong());
        if (partial == null) {
          throw new Violation("more of no row");
        }
        fill(frame);
      }
      case Frames.END -> {
        inOrder(frame.getLong());
        end();
      }
      case Frames.ASK -> ask(frame.getInt());
      case Frames.WATCH -> {
        if (isWatched) {
          throw new Violation("a second question for what waits");
        }
        isWatched = true;
        link.watch(this);
        tellLoad();
      }
      case Frames.BROKEN -> fail("a task of executor " + link.peer() + " that sends here has failed");
      default -> throw new Violation("a message of kind " + kind + " from a writer");
    }
  }

  private void inOrder(long number) {
    if (number != sequence) {
      throw new Violation("message " + number + " of a channel where " + sequence + " is next");
    }
    sequence++;
  }

  private synchronized void begin(int fields, int bytes) {
    boolean fits = isLarge(bytes, roomBytes)
        ? bytes == grantedBytes
        : inboxBytes + owedBytes + bytes <= roomBytes;
    if (partial != null || ended || !fits) {
      throw new Violation("a row that there is no room for");
    }
    if (fields < 0 || bytes % 8 != 0 || UnsafeRow.calculateBitSetWidthInBytes(fields) + 8L * fields > bytes) {
      throw new Violation("a row of " + fields + " fields in " + bytes + " bytes");
    }
    partial = new UnsafeRow(fields);
    content = new byte[bytes];
    filled = 0;
  }

  private void fill(ByteBuffer frame) {
    int bytes = frame.remaining();
    if (bytes > content.length - filled || (bytes == 0 && filled < content.length)) {
      throw new Violation("a part that does not fit its row");
    }
    frame.get(content, filled, bytes);
    filled += bytes;
    if (filled == content.length) {
      deliver();
    }
  }

  private void deliver() {
    UnsafeRow row = partial;
    row.pointTo(content, Platform.BYTE_ARRAY_OFFSET, content.length);
    int bytes = content.length;
    partial = null;
    content = null;
    receivedBytes += bytes;
    synchronized (this) {
      if (closed) {
        return;
      }
      inboxBytes += bytes;
      if (isLarge(bytes, roomBytes)) {
        grantedBytes = 0;
      }
    }
    try {
      if (!inbox.put(new Row(row, bytes, this), bytes, 0)) {
        throw new Violation("a row that there is no room for");
      }
    } catch (InterruptedException impossible) {
      throw new IllegalStateException(impossible); // it does not wait
    }
  }

  private void end() {
    synchronized (this) {
      if (partial != null || ended) {
        throw new Violation("an end inside a row");
      }
      ended = true;
    }
    inbox.end();
    link.forget(this);
    link.send(link.frame(Frames.ENDED, id, 0));
  }

  private void ask(int bytes) {
    synchronized (this) {
      if (!isLarge(bytes, roomBytes) || askedBytes > 0 || grantedBytes > 0 || partial != null || ended) {
        throw new Violation("room asked for " + bytes + " bytes");
      }
      askedBytes = bytes;
      if (inboxBytes > 0 || closed) {
        return;
      }
    }
    largeRows.ask(this, shuffle, bytes, this::grant);
  }

  /** There is room for the row that was asked for, and nothing else is on its way. */
  private void grant() {
    boolean late;
    synchronized (this) {
      int bytes = askedBytes;
      askedBytes = 0;
      largeBytes += bytes;
      late = closed;
      if (!late) {
        grantedBytes = bytes;
        owedBytes = 0;
        link.send(link.frame(Frames.GRANT, id, 4).writeInt(bytes));
      }
    }
    if (late) {
      releaseLarge();
    }
  }

  /** A row was taken out of the inbox. */
  public void taken(int bytes) {
    int wanted = 0;
    boolean large = isLarge(bytes, roomBytes);
    synchronized (this) {
      if (closed) {
        return;
      }
      inboxBytes -= bytes;
      owedBytes += bytes;
      if (large) {
        largeBytes -= bytes;
      }
      if (ended) {
        owedBytes = 0;
      } else if (askedBytes > 0 && inboxBytes == 0) {
        wanted = askedBytes;
      } else if (isLarge(owedBytes, roomBytes)) {
        // Before the lock is let go: a grant that overtook it would take these bytes back a second time.
        link.send(link.frame(Frames.CREDIT, id, 4).writeInt(owedBytes));
        owedBytes = 0;
      }
    }
    if (large) {
      largeRows.release(shuffle, bytes);
    }
    if (wanted > 0) {
      largeRows.ask(this, shuffle, wanted, this::grant);
    }
  }

  /** In the connection's thread, so that what was received is before the reader or was taken by it. */
  void tellLoad() {
    long loadBytes = inbox.load();
    if (loadBytes != toldLoadBytes || receivedBytes != toldReceivedBytes) {
      toldLoadBytes = loadBytes;
      toldReceivedBytes = receivedBytes;
      link.send(link.frame(Frames.LOAD, id, 8 + 8).writeLong(loadBytes).writeLong(receivedBytes));
    }
  }

  void fail(String why) {
    watch.fail(why);
  }

  private void releaseLarge() {
    long bytes;
    synchronized (this) {
      bytes = largeBytes;
      largeBytes = 0;
    }
    if (bytes > 0) {
      largeRows.release(shuffle, bytes);
    }
  }

  /** The reading task has ended. */
  public void close() {
    boolean early;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      early = !ended;
    }
    largeRows.forget(this);
    releaseLarge();
    link.forget(this);
    if (early) {
      link.send(link.frame(Frames.GONE, id, 0));
    }
  }

  int id() {
    return id;
  }
}
