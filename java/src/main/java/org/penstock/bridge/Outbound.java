package org.penstock.bridge;

import java.util.ArrayList;
import java.util.List;

/**
 * Envelopes on their way from the workers to the task thread, bounded by bytes: full means back-pressure. Whoever reads from
 * a worker puts them in; where that is the task thread itself (a unit of one task), it never waits for room.
 */
final class Outbound {
  private static final long LIMIT_BYTES = 1 << 17;

  private List<Envelopes.Out> waiting = new ArrayList<>();
  private long bytes;
  private boolean finished;
  private Throwable failure;
  private Thread reading; // the task thread while it waits for a worker
  private long news;

  synchronized void put(Envelopes.Out out) throws InterruptedException {
    while (bytes >= LIMIT_BYTES && failure == null && Thread.currentThread() != reading) {
      wait();
    }
    waiting.add(out);
    bytes += out.envelope().length;
    changed();
  }

  /** A mark waits for no room: it is small, and whoever brings it may be needed elsewhere. */
  synchronized void putMark(Envelopes.Out out) {
    waiting.add(out);
    bytes += out.envelope().length;
    changed();
  }

  /** Everything that waits, perhaps nothing; null at the end. */
  synchronized List<Envelopes.Out> take() {
    if (failure != null) {
      throw failure instanceof FlowException ? (FlowException) failure : new FlowException(failure);
    }
    if (waiting.isEmpty()) {
      return finished ? null : waiting;
    }
    List<Envelopes.Out> all = waiting;
    waiting = new ArrayList<>();
    bytes = 0;
    notifyAll();
    return all;
  }

  /** A number that changes with everything that `awaitNews` waits for. */
  synchronized long news() {
    return news;
  }

  /** Waits until something has happened since `news` had that value. */
  synchronized void awaitNews(long known, long deadlineNs) throws InterruptedException {
    while (news == known) {
      long leftMs = (deadlineNs - System.nanoTime()) / 1_000_000L;
      if (leftMs <= 0) {
        return;
      }
      wait(leftMs);
    }
  }

  /** There is a worker to read from. */
  synchronized void wake() {
    changed();
  }

  synchronized void finish() {
    finished = true;
    changed();
  }

  synchronized void fail(Throwable problem) {
    if (failure == null) {
      failure = problem;
    }
    if (reading != null && reading != Thread.currentThread()) {
      reading.interrupt();
    }
    changed();
  }

  /** The task thread is going to wait for a worker; false if there is something else to do first. */
  synchronized boolean beginReading() {
    if (failure != null || finished || !waiting.isEmpty()) {
      return false;
    }
    reading = Thread.currentThread();
    return true;
  }

  /** It has; an interrupt that was only to fetch it from there is over with that. */
  synchronized void endReading() throws InterruptedException {
    reading = null;
    if (Thread.interrupted() && failure == null) {
      throw new InterruptedException();
    }
  }

  private void changed() {
    news++;
    notifyAll();
  }
}
