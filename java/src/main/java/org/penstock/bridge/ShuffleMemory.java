package org.penstock.bridge;

/**
 * What the channels of all shuffles of this process hold beyond the room that each of them has: rows that wait so that
 * others can go on, and rows that are larger than that room.
 * The channels of one shuffle have a share. A share that holds nothing takes any row, however little is left: without
 * that, rows before a task could take all memory that the task needs to send what it made of them.
 */
public final class ShuffleMemory {
  private final long limitBytes;
  private long heldBytes;

  public ShuffleMemory(long limitBytes) {
    this.limitBytes = limitBytes;
  }

  public long limitBytes() {
    return limitBytes;
  }

  public synchronized long heldBytes() {
    return heldBytes;
  }

  public Share share() {
    return new Share();
  }

  /** That of one shuffle. */
  public final class Share {
    private long bytes;
    private boolean closed;

    private Share() {}

    boolean take(long wanted) {
      synchronized (ShuffleMemory.this) {
        if (closed || (bytes > 0 && heldBytes + wanted > limitBytes)) {
          return false;
        }
        bytes += wanted;
        heldBytes += wanted;
        return true;
      }
    }

    void giveBack(long some) {
      synchronized (ShuffleMemory.this) {
        if (!closed) {
          bytes -= some;
          heldBytes -= some;
        }
      }
    }

    /** Nobody reads its rows any more. */
    public void close() {
      synchronized (ShuffleMemory.this) {
        heldBytes -= bytes;
        bytes = 0;
        closed = true;
      }
    }
  }
}
