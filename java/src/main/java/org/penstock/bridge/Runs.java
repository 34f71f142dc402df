package org.penstock.bridge;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The driver's registry of running flows. A layer's column is named COLUMN + run + "_" + layer. */
public final class Runs {
  private Runs() {}

  public static final String COLUMN = "penstock_target_";

  private static final Map<String, Run> RUNS = new ConcurrentHashMap<>();
  private static final Map<String, Run> CLOSING = new ConcurrentHashMap<>(); // forgotten, but for what executors still report
  private static final Map<String, Holder> HOLDERS = new ConcurrentHashMap<>(); // by executor
  private static final Reports.Incoming REPORTS = new Reports.Incoming();
  private static final Neighbour SELF = Neighbour.self();

  /** What an executor said when it last asked, and when that was: the runs it has workers of, and which process it is. */
  private record Holder(Set<String> runs, long askedNs, Neighbour process) {
    long silentNs() {
      return System.nanoTime() - askedNs;
    }

    /** Whether its workers may still act: by its own word, unless its process is dead or their lease is over. */
    boolean holds(String run) {
      return runs.contains(run) && (isDriver() || silentNs() <= Lease.TERM_NS && !SELF.knowsDead(process));
    }

    boolean isDriver() {
      return process.equals(SELF);
    }
  }

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

  /** Where reports of a run go: until nobody has workers of it, their last words count. */
  static Run reportedTo(String id) {
    Run run = RUNS.get(id);
    return run == null ? CLOSING.get(id) : run;
  }

  /** Forgets a run, and waits until no executor has workers of it that may still act; what they report meanwhile is there then. */
  public static boolean close(String id, long timeoutMs) throws InterruptedException {
    Run run = RUNS.get(id);
    if (run != null) {
      CLOSING.put(id, run);
      RUNS.remove(id);
    }
    try {
      long deadline = System.nanoTime() + timeoutMs * 1_000_000L;
      while (HOLDERS.values().stream().anyMatch(holder -> holder.holds(id))) {
        if (System.nanoTime() > deadline) {
          return false;
        }
        Thread.sleep(5);
      }
      return true;
    } finally {
      CLOSING.remove(id);
    }
  }

  static void noteHeld(String executor, Set<String> runs, Neighbour process) {
    HOLDERS.put(executor, new Holder(Set.copyOf(runs), System.nanoTime(), process));
  }

  /** For how long an executor has said nothing; one that cannot be cut off is never silent. */
  static long silentNs(String executor) {
    Holder holder = HOLDERS.get(executor);
    return holder == null || holder.isDriver() ? 0 : holder.silentNs();
  }

  /** In the driver: Spark has removed an executor. Its workers may act for as long as their lease lasts. */
  public static void executorRemoved(String executor) {
    RUNS.values().forEach(run -> run.executorRemoved(executor));
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
