package org.penstock.bridge;

import java.util.ArrayList;
import java.util.List;

/**
 * Envelopes between the workers and the task thread. The readers of several workers put them in, bounded by bytes: full
 * means back-pressure. A single worker has no reader: the task thread itself reads from it, which saves every envelope
 * the way from one thread to another.
 */
final class OutQueue {
  private static final long LIMIT_BYTES = 1 << 17;

  /** A worker that the task thread reads from. */
  interface Direct {
    /** Waits for frames and deals with them; false when this worker will send nothing more. */
    boolean more();
  }

  private List<Envelopes.Out> waiting = new ArrayList<>();
  private long bytes;
  private boolean finished;
  private Throwable failure;
  private Direct direct;
  private Thread reading; // the task thread while it waits for a worker

  /** From now on the task thread reads from this worker when nothing waits. */
  synchronized void attach(Direct worker) {
    direct = worker;
    notifyAll();
  }

  synchronized void put(Envelopes.Out out) throws InterruptedException {
    while (bytes >= LIMIT_BYTES && failure == null && Thread.currentThread() != reading) {
      wait();
    }
    waiting.add(out);
    bytes += out.envelope().length;
    notifyAll();
  }

  /** Everything that waits, at least one; an empty list after the timeout; null at the end. */
  List<Envelopes.Out> take(long timeoutMs) throws InterruptedException {
    long deadline = System.nanoTime() + timeoutMs * 1_000_000L;
    while (true) {
      Direct worker;
      synchronized (this) {
        while (waiting.isEmpty() && !finished && failure == null && direct == null) {
          long leftMs = (deadline - System.nanoTime()) / 1_000_000L;
          if (leftMs <= 0) {
            return List.of();
          }
          wait(leftMs);
        }
        if (failure != null) {
          throw failure instanceof FlowException ? (FlowException) failure : new FlowException(failure);
        }
        if (!waiting.isEmpty()) {
          return takeAll();
        }
        if (finished) {
          return null;
        }
        worker = direct;
        reading = Thread.currentThread();
      }
      read(worker);
    }
  }

  private List<Envelopes.Out> takeAll() {
    List<Envelopes.Out> all = waiting;
    waiting = new ArrayList<>();
    bytes = 0;
    notifyAll();
    return all;
  }

  private void read(Direct worker) throws InterruptedException {
    boolean more = worker.more();
    synchronized (this) {
      reading = null;
      if (!more && direct == worker) {
        direct = null;
      }
      if (Thread.interrupted() && failure == null) {
        throw new InterruptedException();
      }
    }
  }

  synchronized void finish() {
    finished = true;
    notifyAll();
  }

  synchronized void fail(Throwable problem) {
    if (failure == null) {
      failure = problem;
    }
    if (reading != null && reading != Thread.currentThread()) {
      reading.interrupt();
    }
    notifyAll();
  }
}
