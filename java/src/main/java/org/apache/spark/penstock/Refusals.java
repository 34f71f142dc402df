package org.apache.spark.penstock;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Connections that this process closed because of what came over them: counted, and told once in a while. */
public final class Refusals {
  private static final Logger LOG = LoggerFactory.getLogger(Refusals.class);
  private static final long TOLD_EVERY_NS = 1_000_000_000L;
  private static final AtomicReference<Seen> LAST = new AtomicReference<>(new Seen(0, ""));
  private static final AtomicLong TOLD_NS = new AtomicLong(System.nanoTime() - TOLD_EVERY_NS);

  /** How many there were since the process began, and what the last one was. */
  public record Seen(long count, String last) {}

  private Refusals() {}

  static void note(Object from, String why) {
    long count = LAST.updateAndGet(seen -> new Seen(seen.count() + 1, from + ": " + why)).count();
    long now = System.nanoTime();
    long told = TOLD_NS.get();
    if (now - told >= TOLD_EVERY_NS && TOLD_NS.compareAndSet(told, now)) {
      LOG.error("Penstock closed a connection from {}: {} ({} closed so far)", from, why, count);
    }
  }

  public static Seen seen() {
    return LAST.get();
  }

  /** How many there were since the process began. */
  public static long count() {
    return seen().count();
  }
}
