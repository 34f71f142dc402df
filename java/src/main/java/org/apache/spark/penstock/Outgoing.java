package org.apache.spark.penstock;

import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/** A channel to a reader in another executor, where it is written. Only the writing task sends rows over it. */
final class Outgoing implements Outlet.Sink {
  private final Link link;
  private final int id;
  private final int roomBytes;
  private long sequence;
  private long sentBytes;
  private long receivedBytes; // of those, when the reader told what was before it
  private long toldBytes;
  private boolean watches;
  private int outstandingBytes;
  private int askedBytes;
  private boolean granted;
  private boolean endSent;
  private boolean ended;
  private String broken;

  Outgoing(Link link, int id, int roomBytes) {
    this.link = link;
    this.id = id;
    this.roomBytes = roomBytes;
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
    notifyAll();
  }

  /** The connection is lost. */
  synchronized void fail(String why) {
    broken = why;
    notifyAll();
  }

  @Override
  public void put(Object key, UnsafeRow row, TaskWatch watch) throws InterruptedException {
    int bytes = row.getSizeInBytes();
    if (Incoming.isLarge(bytes, roomBytes)) {
      awaitGrant(bytes, watch);
    } else {
      awaitRoom(bytes, watch);
    }
    Object base = row.getBaseObject();
    boolean onHeap = base instanceof byte[];
    byte[] content = onHeap ? (byte[]) base : row.getBytes();
    int start = onHeap ? (int) (row.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET) : 0;
    int part = Math.min(bytes, Frames.FRAGMENT_BYTES);
    ByteBuf first = link.frame(Frames.ROW, id, 8 + 4 + 4 + part);
    first.writeLong(sequence++).writeInt(row.numFields()).writeInt(bytes);
    send(first.writeBytes(content, start, part), watch);
    for (int sent = part; sent < bytes; sent += part) {
      part = Math.min(bytes - sent, Frames.FRAGMENT_BYTES);
      ByteBuf more = link.frame(Frames.MORE, id, 8 + part).writeLong(sequence++);
      send(more.writeBytes(content, start + sent, part), watch);
    }
  }

  private void send(ByteBuf frame, TaskWatch watch) throws InterruptedException {
    link.send(frame);
    while (!link.awaitWritable(TaskWatch.LOOK_MS)) {
      check(watch);
    }
  }

  private synchronized void awaitRoom(int bytes, TaskWatch watch) throws InterruptedException {
    check(watch);
    while (outstandingBytes + bytes > roomBytes) {
      wait(TaskWatch.LOOK_MS);
      check(watch);
    }
    outstandingBytes += bytes;
    sentBytes += bytes;
  }

  private synchronized void awaitGrant(int bytes, TaskWatch watch) throws InterruptedException {
    askedBytes = bytes;
    link.send(link.frame(Frames.ASK, id, 4).writeInt(bytes));
    while (!granted) {
      check(watch);
      wait(TaskWatch.LOOK_MS);
    }
    granted = false;
    askedBytes = 0;
    outstandingBytes = bytes;
    sentBytes += bytes;
  }

  /** What the reader told last, and what was sent to it since; it tells from the first question on. */
  @Override
  public synchronized long load() {
    if (!watches && !endSent && broken == null) {
      watches = true;
      link.send(link.frame(Frames.WATCH, id, 0));
    }
    return toldBytes + sentBytes - receivedBytes;
  }

  private synchronized void check(TaskWatch watch) {
    if (broken != null) {
      watch.fail(broken);
    }
    watch.check();
  }

  @Override
  public synchronized void end() {
    endSent = true;
    link.send(link.frame(Frames.END, id, 8).writeLong(sequence++));
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
    if (!ended && broken == null) {
      link.send(link.frame(Frames.BROKEN, id, 0));
    }
  }

  int id() {
    return id;
  }
}
