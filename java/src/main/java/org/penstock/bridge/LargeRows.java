package org.penstock.bridge;

import java.util.ArrayDeque;
import java.util.Iterator;

/**
 * Room in this process for rows that are larger than a channel: they are asked for before they are sent, and served in the
 * order in which they were asked for. One that is larger than all of the room gets it alone.
 */
public final class LargeRows {
  private record Request(Object owner, int bytes, Runnable granted) {}

  private final long mostBytes;
  private final ArrayDeque<Request> waiting = new ArrayDeque<>();
  private long usedBytes;

  public LargeRows(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  /** Calls `granted` as soon as there is room, at once if there is. */
  public void ask(Object owner, int bytes, Runnable granted) {
    synchronized (this) {
      waiting.add(new Request(owner, bytes, granted));
    }
    serve();
  }

  /** Gives back what was granted. */
  public void release(long bytes) {
    synchronized (this) {
      usedBytes -= bytes;
    }
    serve();
  }

  /** Whoever asked no longer wants it. */
  public void forget(Object owner) {
    synchronized (this) {
      for (Iterator<Request> each = waiting.iterator(); each.hasNext(); ) {
        if (each.next().owner() == owner) {
          each.remove();
        }
      }
    }
    serve();
  }

  public synchronized long usedBytes() {
    return usedBytes;
  }

  public synchronized int waiting() {
    return waiting.size();
  }

  private void serve() {
    for (Request next = nextWithRoom(); next != null; next = nextWithRoom()) {
      next.granted().run();
    }
  }

  private synchronized Request nextWithRoom() {
    Request first = waiting.peek();
    if (first == null || (usedBytes > 0 && usedBytes + first.bytes() > mostBytes)) {
      return null;
    }
    usedBytes += first.bytes();
    return waiting.poll();
  }
}
