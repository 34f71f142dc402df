package org.penstock.bridge;

/**
 * What executors must know of epochs, all 0 where commits are boundaries: the last one before the batch that runs, the one that
 * sources are to mark, whether they wait for its end then, the last one that is over, and the last one that is committed.
 */
public record Epochs(long before, long ordered, boolean quiet, long over, long committed) {
  static final Epochs NONE = new Epochs(0, 0, false, 0, 0);
}
