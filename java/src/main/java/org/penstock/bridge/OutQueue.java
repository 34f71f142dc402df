package org.penstock.bridge;

import java.util.ArrayList;
import java.util.List;

/** Envelopes between the readers of the workers and the task thread, bounded by bytes: full means back-pressure. */
final class OutQueue {
  private static final long LIMIT_BYTES = 1 << 17;

  private List<Envelopes.Out> waiting = new ArrayList<>();
  private long bytes;
  private boolean finished;
  private Throwable failure;

  synchronized void put(Envelopes.Out out) throws InterruptedException {
    while (bytes >= LIMIT_BYTES && failure == null) {
      wait();
    }
    waiting.add(out);
    bytes += out.envelope().length;
    notifyAll();
  }

  /** Everything that waits, at least one; an empty list after the timeout; null at the end. */
  synchronized List<Envelopes.Out> take(long timeoutMs) throws InterruptedException {
    long deadline = System.nanoTime() + timeoutMs * 1_000_000L;
    while (waiting.isEmpty() && !finished && failure == null) {
      long leftMs = (deadline - System.nanoTime()) / 1_000_000L;
      if (leftMs <= 0) {
        return List.of();
      }
      wait(leftMs);
    }
    if (failure != null) {
      throw failure instanceof FlowException ? (FlowException) failure : new FlowException(failure);
    }
    if (waiting.isEmpty()) {
      return null;
    }
    List<Envelopes.Out> all = waiting;
    waiting = new ArrayList<>();
    bytes = 0;
    notifyAll();
    return all;
  }

  synchronized void finish() {
    finished = true;
    notifyAll();
  }

  synchronized void fail(Throwable problem) {
    if (failure == null) {
      failure = problem;
    }
    notifyAll();
  }
}
