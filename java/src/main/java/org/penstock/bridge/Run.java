package org.penstock.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;

/** The driver's side of one running flow: its settings, the gate between batches, and the reports of its workers. */
public final class Run {
  private static final int REPORTS_KEPT = 100_000;

  private final String id;
  private final Map<String, Integer> widths = new HashMap<>();
  private final List<String> reports = new ArrayList<>();
  private final Set<Integer> dry = new HashSet<>();
  private final Map<String, Long> adopted = new HashMap<>(); // by executor: the version its workers were told
  private Settings settings;
  private FlowSource.Spec source;
  private long batch = -1;
  private long flowing = -1;
  private long flowingSinceNs;
  private boolean held;
  private boolean atGate;
  private boolean exhausted;
  private long startedAtEpochNs;

  Run(String id) {
    this.id = id;
    this.settings = new Settings(id, 0, "{}", Map.of(), Set.of(), -1, false);
  }

  public synchronized void setSource(RunSpec run, UnitSpec[] units, String firstOffset, String column, long batchMs) {
    source = new FlowSource.Spec(run, units, firstOffset, column, batchMs);
  }

  synchronized FlowSource.Spec source() {
    return source;
  }

  /** New settings, as JSON for the workers; the bridge itself looks only at "active" and "chains". */
  public synchronized void publish(String json) {
    Map<String, Integer> active = new HashMap<>();
    Reports.parse(json).get("active").properties().forEach(task -> active.put(task.getKey(), task.getValue().asInt()));
    Set<String> chained = new HashSet<>();
    for (JsonNode chain : Reports.parse(json).path("chains")) {
      for (int i = 1; i < chain.size(); i++) {
        chained.add(chain.get(i).asText());
      }
    }
    settings =
        new Settings(id, settings.version() + 1, json, active, chained, settings.endBatch(), settings.closing());
  }

  public synchronized void setWidth(String column, int partitions) {
    widths.put(column, partitions);
  }

  synchronized int width(String column) {
    return widths.getOrDefault(column, 0);
  }

  synchronized Settings settings() {
    return settings;
  }

  synchronized void noteAdopted(String executor, long version) {
    Long before = adopted.put(executor, version);
    if (before == null || before != version) {
      notifyAll();
    }
  }

  /** Waits until every executor has told its workers what was published last; new replicas are up by then. */
  public synchronized boolean awaitAdopted(long timeoutMs) throws InterruptedException {
    long version = settings.version();
    return await(
        () -> !adopted.isEmpty() && adopted.values().stream().allMatch(known -> known >= version), timeoutMs);
  }

  /** Ends the batch that runs now and holds the next one at the gate; `closing` tells the workers that it was the last. */
  public synchronized void endBatch(boolean closing) {
    held = true;
    settings = ending(batch, settings.closing() || closing);
    notifyAll();
  }

  /** Ends a batch that has lasted as long as a batch may; the next one begins at once. */
  synchronized void endBatchIfOld() {
    boolean old = System.nanoTime() - flowingSinceNs > source.batchMs() * 1_000_000L;
    if (old && flowing == batch && settings.endBatch() < batch) {
      settings = ending(batch, settings.closing());
    }
  }

  private Settings ending(long endBatch, boolean closing) {
    return new Settings(
        id, settings.version() + 1, settings.json(), settings.active(), settings.chained(), endBatch, closing);
  }

  /** Lets the held batch begin. */
  public synchronized void release() {
    held = false;
    atGate = false;
    notifyAll();
  }

  /** Waits until the stream thread stands at the gate: everything before is drained and handed to the commit log. */
  public synchronized boolean awaitGate(long timeoutMs) throws InterruptedException {
    return await(() -> atGate, timeoutMs);
  }

  private boolean await(BooleanSupplier condition, long timeoutMs) throws InterruptedException {
    long deadline = System.nanoTime() + timeoutMs * 1_000_000L;
    while (!condition.getAsBoolean()) {
      long leftMs = (deadline - System.nanoTime()) / 1_000_000L;
      if (leftMs <= 0) {
        return false;
      }
      wait(leftMs);
    }
    return true;
  }

  /** Called by Spark's stream thread before each batch; returns the number of the batch that may begin. */
  synchronized long passGate() throws InterruptedException {
    while (held || exhausted) {
      atGate = true;
      notifyAll();
      wait();
    }
    return ++batch;
  }

  public synchronized long batch() {
    return batch;
  }

  /** After the last one the batch that runs is the last, and downstream tasks are closed at its end. */
  synchronized void sourceDone(int partition) {
    dry.add(partition);
    if (dry.size() == source.width() && !settings.closing()) {
      settings = ending(batch, true);
    }
  }

  /** All partitions of all sources said that nothing will ever come again. */
  synchronized void markExhausted() {
    exhausted = true;
  }

  public synchronized boolean isExhausted() {
    return exhausted && atGate;
  }

  /**
   * A source worker is about to start in a batch. Answers when (epoch ns) the first one of this run did: time zero of
   * every schedule.
   */
  synchronized long sourceStarts(long inBatch) {
    if (startedAtEpochNs == 0) {
      startedAtEpochNs = System.currentTimeMillis() * 1_000_000L;
    }
    if (inBatch > flowing) {
      flowing = inBatch;
      flowingSinceNs = System.nanoTime();
    }
    notifyAll();
    return startedAtEpochNs;
  }

  /** Waits until a source reads in this batch or a later one. */
  public synchronized boolean awaitFlowing(long inBatch, long timeoutMs) throws InterruptedException {
    return await(() -> flowing >= inBatch, timeoutMs);
  }

  synchronized void report(String executor, String json) {
    if (reports.size() < REPORTS_KEPT) {
      reports.add("{\"executor\":" + Reports.text(executor) + ",\"said\":" + json + "}");
    }
  }

  /** The reports since the last call, each with its executor, as one JSON array: one crossing into Python whatever their number. */
  public synchronized String drainReports() {
    String all = "[" + String.join(",", reports) + "]";
    reports.clear();
    return all;
  }
}
