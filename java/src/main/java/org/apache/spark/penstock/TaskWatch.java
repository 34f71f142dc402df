package org.apache.spark.penstock;

import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;

/**
 * What a task looks at while it waits for another: whether Spark has ended it, and whether it can go on. When the other task
 * failed Spark ends this one, too, and says why; only if it does not this one fails by itself.
 */
public final class TaskWatch {
  static final long LOOK_MS = 100;
  private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(5);

  private final TaskContext context;
  private volatile String failure;
  private volatile long failureNs;

  public TaskWatch(TaskContext context) {
    this.context = context;
  }

  /** It cannot go on. */
  void fail(String why) {
    if (failure == null) {
      failureNs = System.nanoTime();
      failure = why;
    }
  }

  void check() {
    context.killTaskIfInterrupted();
    if (context.isCompleted() || context.isFailed()) {
      throw new IllegalStateException("the task has ended");
    }
    String why = failure;
    if (why != null && System.nanoTime() - failureNs > PATIENCE_NS) {
      throw new IllegalStateException(why);
    }
  }

  public boolean hasFailed() {
    return failure != null;
  }

  /** For waits that were interrupted. */
  static IllegalStateException cancelled(InterruptedException how) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("the task was cancelled", how);
  }
}
