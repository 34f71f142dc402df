package org.penstock.bridge;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The driver's registry of running flows. A layer's column is named COLUMN + run + "_" + layer. */
public final class Runs {
  private Runs() {}

  public static final String COLUMN = "penstock_target_";

  private static final Map<String, Run> RUNS = new ConcurrentHashMap<>();
  private static final Map<String, Set<String>> HELD_BY_EXECUTOR = new ConcurrentHashMap<>();
  private static final Reports.Incoming REPORTS = new Reports.Incoming();

  public static Run open(String id) {
    Run run = new Run(id);
    if (RUNS.putIfAbsent(id, run) != null) {
      throw new IllegalStateException("run " + id + " exists already");
    }
    return run;
  }

  static Run get(String id) {
    return RUNS.get(id);
  }

  /** Forgets a run, and waits until every executor has ended its workers. */
  public static boolean close(String id, long timeoutMs) throws InterruptedException {
    RUNS.remove(id);
    long deadline = System.nanoTime() + timeoutMs * 1_000_000L;
    while (HELD_BY_EXECUTOR.values().stream().anyMatch(held -> held.contains(id))) {
      if (System.nanoTime() > deadline) {
        return false;
      }
      Thread.sleep(5);
    }
    return true;
  }

  static void noteHeld(String executor, Set<String> runs) {
    HELD_BY_EXECUTOR.put(executor, new HashSet<>(runs));
  }

  /** In the driver: an executor is gone, and nobody waits for it any longer. */
  public static void forgetExecutor(String executor) {
    HELD_BY_EXECUTOR.remove(executor);
    RUNS.values().forEach(run -> run.forgetExecutor(executor));
  }

  static Reports.Incoming reports() {
    return REPORTS;
  }

  /** The present width of the layer behind a shuffle column; 0 for a column that is none of ours. */
  public static int widthOfColumn(String column) {
    if (!column.startsWith(COLUMN)) {
      return 0;
    }
    String id = column.substring(COLUMN.length(), column.lastIndexOf('_'));
    Run run = RUNS.get(id);
    return run == null ? 0 : run.width(column);
  }
}
