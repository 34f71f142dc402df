package org.penstock.bridge;

/** The user's code cannot go on: starting the flow again would not help. */
public final class FlowBroken extends FlowException {
  public FlowBroken(String message) {
    super(message);
  }
}
