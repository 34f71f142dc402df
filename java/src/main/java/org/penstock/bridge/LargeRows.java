package org.penstock.bridge;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Room in this process for rows that are larger than a channel: they are asked for before they are sent, and served in the
 * order in which they were asked for. One that is larger than all of the room gets it alone. A shuffle that holds nothing gets
 * its first one however little is left: without that, rows before a task could take all room that the task needs to send
 * what it made of them, and nothing would ever move.
 */
public final class LargeRows {
  private static final AtomicLong HELD = new AtomicLong(); // of all there are in this process: an executor has one

  private record Request(Object owner, int shuffle, int bytes, Runnable granted) {}

  private final long mostBytes;
  private final ArrayDeque<Request> waiting = new ArrayDeque<>();
  private final Map<Integer, Long> usedByShuffle = new HashMap<>(); // only those that hold some
  private long usedBytes;

  public LargeRows(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  /** Calls `granted` as soon as there is room, at once if there is. */
  public void ask(Object owner, int shuffle, int bytes, Runnable granted) {
    synchronized (this) {
      waiting.add(new Request(owner, shuffle, bytes, granted));
    }
    serve();
  }

  /** Gives back what was granted. */
  public void release(int shuffle, long bytes) {
    synchronized (this) {
      usedBytes -= bytes;
      HELD.addAndGet(-bytes);
      usedByShuffle.computeIfPresent(shuffle, (id, used) -> used == bytes ? null : used - bytes);
    }
    serve();
  }

  /** Whoever asked no longer wants it. */
  public void forget(Object owner) {
    synchronized (this) {
      waiting.removeIf(request -> request.owner() == owner);
    }
    serve();
  }

  public synchronized long usedBytes() {
    return usedBytes;
  }

  /** What large rows hold in this process, from when they are granted until they are taken out of their inbox. */
  public static long heldBytes() {
    return HELD.get();
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
    if (first == null) {
      return null;
    }
    boolean fits = usedBytes == 0 || usedBytes + first.bytes() <= mostBytes;
    for (Iterator<Request> each = waiting.iterator(); each.hasNext(); ) {
      Request next = each.next();
      if (fits || !usedByShuffle.containsKey(next.shuffle())) {
        each.remove();
        usedBytes += next.bytes();
        HELD.addAndGet(next.bytes());
        usedByShuffle.merge(next.shuffle(), (long) next.bytes(), Long::sum);
        return next;
      }
    }
    return null;
  }
}
