package org.apache.spark.penstock;

/** A message that no executor of ours sends at this time: its connection is closed. */
final class Violation extends RuntimeException {
  private static final long serialVersionUID = 1L;

  Violation(String why) {
    super(why);
  }
}
