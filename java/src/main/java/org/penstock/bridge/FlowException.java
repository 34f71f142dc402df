package org.penstock.bridge;

/** A failure told in words of the flow. */
public class FlowException extends RuntimeException {
  public FlowException(String message) {
    super(message);
  }

  public FlowException(Throwable cause) {
    super(cause.getMessage() == null ? cause.toString() : cause.getMessage(), cause);
  }
}
