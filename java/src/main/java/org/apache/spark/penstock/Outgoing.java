package org.apache.spark.penstock;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelFuture;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.penstock.bridge.Sender;

/**
 * A channel to a reader in another executor, where it is written. What there is no room for waits here as long as its writer may
 * have that much waiting (`Sender`), and leaves in its order as room comes back. Else the writer waits.
 */
final class Outgoing implements Outlet.Sink {
  private static final AtomicLong WAITING_BYTES = new AtomicLong(); // of all there are in this process

  private final Link link;
  private final int id;
  private final int roomBytes;
  private final Sender sender;
  private final ArrayDeque<UnsafeRow> waiting = new ArrayDeque<>();
  private long waitingBytes;
  private long sequence;
  private long sentBytes;
  private long receivedBytes; // of those, when the reader told what was before it
  private long toldBytes;
  private boolean watches;
  private int outstandingBytes;
  private int askedBytes;
  private boolean granted;
  private boolean endDue;
  private boolean endSent;
  private boolean ended;
  private String broken;

  Outgoing(Link link, int id, int roomBytes, Sender sender) {
    this.link = link;
    this.id = id;
    this.roomBytes = roomBytes;
    this.sender = sender;
  }

  synchronized void receive(byte kind, ByteBuffer frame) {
    switch (kind) {
      case Frames.CREDIT -> {
        int bytes = frame.getInt();
        if (bytes <= 0 || bytes > outstandingBytes) {
          throw new Violation("credit for " + bytes + " of " + outstandingBytes + " bytes");
        }
        outstandingBytes -= bytes;
      }
      case Frames.GRANT -> {
        if (askedBytes == 0 || granted || frame.getInt() != askedBytes) {
          throw new Violation("room that nobody asked for");
        }
        granted = true;
        outstandingBytes = 0;
      }
      case Frames.ENDED -> {
        if (!endSent) {
          throw new Violation("an end that was not said");
        }
        ended = true;
        link.forget(this);
      }
      case Frames.LOAD -> {
        long bytes = frame.getLong();
        long received = frame.getLong();
        if (!watches || bytes < 0 || received < receivedBytes || received > sentBytes) {
          throw new Violation(bytes + " bytes before a reader that has received " + received);
        }
        toldBytes = bytes;
        receivedBytes = received;
      }
      case Frames.GONE -> broken = "a task of executor " + link.peer() + " that reads from here has failed";
      default -> throw new Violation("a message of kind " + kind + " from a reader");
    }
    flush();
    notifyAll();
  }

  /** The connection is lost. */
  synchronized void fail(String why) {
    broken = why;
    notifyAll();
  }

  @Override
  public void put(Object key, UnsafeRow given, TaskWatch watch) throws InterruptedException {
    UnsafeRow row = given.getBaseObject() instanceof byte[] ? given : given.copy();
    int bytes = row.getSizeInBytes();
    ChannelFuture sent;
    synchronized (this) {
      check(watch);
      while (!waiting.isEmpty() || !takeRoom(bytes)) {
        if (sender.mayWait(waitingBytes, bytes)) {
          waiting.add(row.copy()); // Spark uses it again for the next one
          waits(bytes);
          return;
        }
        wait(TaskWatch.LOOK_MS);
        check(watch);
      }
      sent = send(row, 0);
    }
    for (int from = Frames.FRAGMENT_BYTES; from < bytes; from += Frames.FRAGMENT_BYTES) {
      await(sent, watch); // others pass
      sent = send(row, from);
    }
    if (link.isCongested()) {
      await(sent, watch);
    }
  }

  private void waits(long more) {
    waitingBytes += more;
    WAITING_BYTES.addAndGet(more);
  }

  /** What waits in this process for room in other executors. */
  static long waitingBytesOfAll() {
    return WAITING_BYTES.get();
  }

  private void await(ChannelFuture sent, TaskWatch watch) throws InterruptedException {
    while (!sent.await(TaskWatch.LOOK_MS)) {
      check(watch);
    }
  }

  /** Whether the next row may leave now; one that is large is asked for first. */
  private boolean takeRoom(int bytes) {
    if (Incoming.isLarge(bytes, roomBytes)) {
      if (askedBytes == 0) {
        askedBytes = bytes;
        link.send(link.frame(Frames.ASK, id, 4).writeInt(bytes));
      }
      if (!granted) {
        return false;
      }
      granted = false;
      askedBytes = 0;
    } else if (outstandingBytes + bytes > roomBytes) {
      return false;
    }
    outstandingBytes += bytes;
    sentBytes += bytes;
    return true;
  }

  /** Of a row, which lies in an array, what one message holds. */
  private ChannelFuture send(UnsafeRow row, int from) {
    int bytes = row.getSizeInBytes();
    int part = Math.min(bytes - from, Frames.FRAGMENT_BYTES);
    ByteBuf frame = from == 0
        ? link.frame(Frames.ROW, id, 8 + 4 + 4 + part).writeLong(sequence).writeInt(row.numFields()).writeInt(bytes)
        : link.frame(Frames.MORE, id, 8 + part).writeLong(sequence);
    sequence++;
    int start = (int) (row.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
    return link.send(frame.writeBytes((byte[]) row.getBaseObject(), start + from, part));
  }

  /** What waits leaves as far as there is room, and behind it the end. */
  private void flush() {
    while (!waiting.isEmpty() && takeRoom(waiting.peek().getSizeInBytes())) {
      UnsafeRow row = waiting.poll();
      int bytes = row.getSizeInBytes();
      waits(-bytes);
      sender.giveBack(bytes);
      for (int from = 0; from == 0 || from < bytes; from += Frames.FRAGMENT_BYTES) {
        send(row, from);
      }
    }
    if (endDue && waiting.isEmpty()) {
      endDue = false;
      endSent = true;
      link.send(link.frame(Frames.END, id, 8).writeLong(sequence++));
    }
  }

  /** What the reader told last, and what was sent to it since or waits here; it tells from the first question on. */
  @Override
  public synchronized long load() {
    if (!watches && !endSent && broken == null) {
      watches = true;
      link.send(link.frame(Frames.WATCH, id, 0));
    }
    return toldBytes + sentBytes - receivedBytes + waitingBytes;
  }

  private synchronized void check(TaskWatch watch) {
    if (broken != null) {
      watch.fail(broken);
    }
    watch.check();
  }

  @Override
  public synchronized void end() {
    endDue = true;
    flush();
  }

  @Override
  public synchronized void awaitEnded(TaskWatch watch) throws InterruptedException {
    while (!ended) {
      check(watch);
      wait(TaskWatch.LOOK_MS);
    }
  }

  @Override
  public synchronized void close() {
    link.forget(this);
    sender.giveBack(waitingBytes);
    waits(-waitingBytes);
    waiting.clear();
    endDue = false; // of rows that did not all leave
    if (!ended && broken == null) {
      link.send(link.frame(Frames.BROKEN, id, 0));
    }
  }

  int id() {
    return id;
  }
}
