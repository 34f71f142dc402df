package org.penstock.bridge;

import java.util.concurrent.atomic.AtomicLong;

/**
 * One writer of a shuffle, whose channels may hold more than their room, so that it can go on to others when one is full.
 * What it has waiting like that is bounded, and shared fairly: a channel may hold as much as is left of it for all. So one
 * that is full takes half, and of n that are full each takes one part in n + 1; something is always left for the next.
 */
public final class Sender {
  private final ShuffleMemory.Share memory;
  private final long aheadBytes;
  private final AtomicLong ahead = new AtomicLong();

  public Sender(ShuffleMemory.Share memory, long aheadBytes) {
    this.memory = memory;
    this.aheadBytes = aheadBytes;
  }

  /** One whose rows are counted by somebody else: it has nothing waiting beyond the room of its channels but single rows. */
  public static Sender counted() {
    return new Sender(new ShuffleMemory(Long.MAX_VALUE).share(), 0);
  }

  /** A channel that has rows, and so much beyond its room, wants to have that much more. */
  public boolean mayWait(long beyond, long more) {
    return beyond + more <= aheadBytes - ahead.get() && take(more);
  }

  /** The same for one without rows: it takes any as soon as there is memory for it. */
  boolean take(long more) {
    if (!memory.take(more)) {
      return false;
    }
    ahead.addAndGet(more);
    return true;
  }

  public void giveBack(long some) {
    ahead.addAndGet(-some);
    memory.giveBack(some);
  }
}
