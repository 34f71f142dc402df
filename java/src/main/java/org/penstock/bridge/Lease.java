package org.penstock.bridge;

import java.io.IOException;

/**
 * Until when the workers of an executor may act. Each question that the driver has answered prolongs it, counted from when it
 * was asked; a worker whose lease is over ends itself, also if this JVM stands still. So the driver knows, without a word from
 * an executor that is cut off, when nothing there writes to a sink any more: `TERM_NS` after it last heard of it.
 */
final class Lease {
  static final long TERM_NS = 8_000_000_000L;

  private final boolean limited;
  private long renewedNs = System.nanoTime();

  private Lease(boolean limited) {
    this.limited = limited;
  }

  static Lease startingNow() {
    return new Lease(true);
  }

  /** An executor inside the driver cannot be cut off from it. */
  static Lease unlimited() {
    return new Lease(false);
  }

  boolean isLimited() {
    return limited;
  }

  /** A question asked at this time was answered; answers may overtake each other. */
  synchronized void renew(long askedNs) {
    if (askedNs - renewedNs > 0) {
      renewedNs = askedNs;
    }
  }

  synchronized long untilNs() {
    return renewedNs + TERM_NS;
  }

  /** Refuses to start anything that would end at once. */
  void check() throws IOException {
    if (limited && System.nanoTime() - untilNs() > 0) {
      throw new IOException(
          "this executor has heard nothing of its driver for " + TERM_NS / 1_000_000_000L + " s, so its workers have ended");
    }
  }
}
