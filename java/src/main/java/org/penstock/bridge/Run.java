package org.penstock.bridge;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.util.RawValue;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;

/** The driver's side of one running flow: its orders, the gate between batches, and the reports of its workers. */
public final class Run {
  private static final long SILENT_NS = 10_000_000_000L; // longer than a lease

  private final String id;
  private final Map<String, Integer> widths = new HashMap<>();
  private final Deque<Said> reports = new ArrayDeque<>();
  private final List<String> dones = new ArrayList<>(); // reports of epochs, which are for whoever commits
  private final Set<Integer> dry = new HashSet<>();
  private final Map<String, String> lost = new TreeMap<>();
  private final Map<String, Long> adopted = new HashMap<>(); // by executor: the version its workers were told
  private Orders orders;
  private boolean marks;
  private long epoch; // the last one that has a number
  private long endEpoch; // the one with which the last batch that was told to end ends
  private FlowSource.Spec source;
  private long batch = -1;
  private long flowing = -1;
  private long flowingSinceNs;
  private long endOrderedNs;
  private double gapMs;
  private boolean held;
  private boolean atGate;
  private boolean exhausted;
  private boolean woken; // whoever waits for reports of epochs has something else to do
  private long startedAtNs;
  private boolean anySourceStarted;

  private record Said(String executor, String json) {}

  Run(String id) {
    this.id = id;
    this.orders = new Orders(id, 0, "{}", Map.of(), Set.of(), -1, -1, false, Epochs.NONE, 0, Set.of());
  }

  /** What is to be read, and the number of the first batch: one more than the last that the checkpoint knows. */
  public synchronized void setSource(FlowSource.Spec source, long firstBatch) {
    this.source = source;
    batch = firstBatch - 1;
    flowing = batch;
  }

  /** Other replicas of sources or other splits, from the next batch on: units, splits and starts as in FlowSource.Spec. */
  public synchronized void changeSource(UnitSpec[] units, String splits, String start) throws JsonProcessingException {
    source = FlowSource.Spec.of(source.run(), units, splits, start, source.column(), source.commitMs());
  }

  synchronized FlowSource.Spec source() {
    return source;
  }

  /** New switches, as JSON for the workers; the bridge itself looks only at "active", "chains" and "rescales". */
  public synchronized void publish(String json) {
    Map<String, Integer> active = new HashMap<>();
    Json.parse(json).get("active").properties().forEach(task -> active.put(task.getKey(), task.getValue().asInt()));
    Set<String> chained = new HashSet<>();
    for (JsonNode chain : Json.parse(json).path("chains")) {
      for (int i = 1; i < chain.size(); i++) {
        chained.add(chain.get(i).asText());
      }
    }
    long moving = 0;
    Set<String> moved = new HashSet<>();
    for (Map.Entry<String, JsonNode> rescale : Json.parse(json).path("rescales").properties()) {
      moving = Math.max(moving, rescale.getValue().get("epoch").asLong());
      moved.add(rescale.getKey());
    }
    orders =
        new Orders(
            id, orders.version() + 1, json, active, chained, batch, orders.endBatch(), orders.closing(),
            orders.epochs(), moving, moved);
  }

  public synchronized void setWidth(String column, int partitions) {
    widths.put(column, partitions);
  }

  synchronized int width(String column) {
    return widths.getOrDefault(column, 0);
  }

  synchronized Orders orders() {
    return orders;
  }

  public synchronized void noteAdopted(String executor, long version) {
    Long before = adopted.put(executor, version);
    if (before == null || before != version) {
      notifyAll();
    }
  }

  synchronized void executorRemoved(String executor) {
    if (adopted.remove(executor) != null) {
      lost.put(executor, "executor " + executor + " is lost");
    }
    notifyAll();
  }

  /** Executors that had workers of this run and have none any more, in words. */
  public synchronized String lostExecutors() {
    return String.join(", ", lost.values());
  }

  /** Counts as lost whoever has said nothing for so long that its workers have ended; their ids, with spaces between. */
  public synchronized String loseSilentExecutors() {
    List<String> silent =
        adopted.keySet().stream().filter(executor -> Runs.silentNs(executor) > SILENT_NS).sorted().toList();
    for (String executor : silent) {
      adopted.remove(executor);
      lost.put(executor, "executor " + executor + " has said nothing for " + SILENT_NS / 1_000_000_000L + " s");
    }
    notifyAll();
    return String.join(" ", silent);
  }

  /** Waits until every executor has told its workers what was published last; new replicas are up by then. */
  public synchronized boolean awaitAdopted(long timeoutMs) throws InterruptedException {
    long version = orders.version();
    return await(
        () -> !adopted.isEmpty() && adopted.values().stream().allMatch(known -> known >= version), timeoutMs);
  }

  /** Ends the batch that runs now and holds the next one at the gate; `closing` tells the workers that it was the last. */
  public synchronized void endBatch(boolean closing) {
    held = true;
    end(orders.closing() || closing);
    notifyAll();
  }

  /** Ends a batch that has lasted as long as a batch may; the next one begins at once. */
  synchronized void endBatchIfOld() {
    boolean old = System.nanoTime() - flowingSinceNs > source.commitMs() * 1_000_000L;
    if (old && flowing == batch && orders.endBatch() < batch) {
      end(orders.closing());
    }
  }

  /** Orders the end of the batch that runs. */
  private void end(boolean closing) {
    if (orders.endBatch() < batch) {
      endOrderedNs = System.nanoTime();
      if (marks) {
        endEpoch = ++epoch;
        notifyAll();
      }
    }
    order(batch, closing, orders.epochs());
  }

  private void order(long endBatch, boolean closing, Epochs epochs) {
    orders =
        new Orders(
            id, orders.version() + 1, orders.switches(), orders.active(), orders.chained(), batch, endBatch, closing,
            epochs, orders.moving(), orders.moved());
  }

  /** From now on commits are marks; this is the last epoch that is committed. */
  public synchronized void useMarks(long committed) {
    marks = true;
    epoch = endEpoch = committed;
    order(orders.endBatch(), orders.closing(), new Epochs(committed, committed, false, committed, committed));
  }

  /** Has sources mark another epoch, if they read; its number, 0 if they do not. One that is open must be over first. */
  public synchronized long orderEpoch(boolean quiet) {
    Epochs now = orders.epochs();
    if (nextEpoch() == 0) {
      return 0;
    }
    epoch++;
    order(orders.endBatch(), orders.closing(), new Epochs(now.before(), epoch, quiet, now.over(), now.committed()));
    return epoch;
  }

  /** The number that the next order has, unless the batch ends before it; 0 if nothing can be ordered now. */
  public synchronized long nextEpoch() {
    boolean isOpen = orders.epochs().ordered() > orders.epochs().over();
    return flowing != batch || orders.endBatch() >= batch || isOpen ? 0 : epoch + 1;
  }

  /** Somewhere too much waits for the epoch that is open: sources wait for its end, too. */
  private void quieten() {
    Epochs now = orders.epochs();
    if (now.ordered() > now.over() && !now.quiet()) {
      order(
          orders.endBatch(), orders.closing(), new Epochs(now.before(), now.ordered(), true, now.over(), now.committed()));
    }
  }

  /** An epoch is committed, or void. A batch that ended with it may be followed by the next. */
  public synchronized void epochOver(long over, boolean committed) {
    Epochs now = orders.epochs();
    long last = committed ? over : now.committed();
    order(orders.endBatch(), orders.closing(), new Epochs(now.before(), now.ordered(), now.quiet(), over, last));
    notifyAll();
  }

  /**
   * What the tasks reported of epochs since the last call, and the epoch with which the batch ends (0 while it does not), as JSON.
   * Waits until there are as many reports as are missing, or the batch ends, or somebody wakes it.
   */
  public synchronized String awaitDone(long knownEnd, int missing, long timeoutMs) throws InterruptedException {
    await(() -> woken || dones.size() >= missing || ending() != knownEnd, timeoutMs);
    woken = false;
    String all = "{\"end\":" + ending() + ",\"reports\":[" + String.join(",", dones) + "]}";
    dones.clear();
    return all;
  }

  /** Whoever waits in `awaitDone`, or is about to, waits no longer. */
  public synchronized void wake() {
    woken = true;
    notifyAll();
  }

  private long ending() {
    return endEpoch > orders.epochs().over() ? endEpoch : 0;
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
    while (ending() > 0) {
      wait(); // until the end of the batch before is in the log
    }
    while (held || exhausted) {
      atGate = true;
      notifyAll();
      wait();
    }
    batch++;
    dry.clear(); // what has run dry says so again in each batch, wherever it is read then
    Epochs now = orders.epochs();
    order(
        orders.endBatch(), orders.closing(), new Epochs(epoch, Math.max(epoch, now.ordered()), false, epoch, now.committed()));
    return batch;
  }

  public synchronized long batch() {
    return batch;
  }

  /** After the last replica the batch that runs is the last, and downstream tasks are closed at its end. */
  synchronized void sourceDone(int partition) {
    dry.add(partition);
    if (dry.size() == source.width() && !orders.closing()) {
      end(true);
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
   * A source worker is about to start in a batch. Answers when the first one of this run did, by the driver's monotonic
   * clock: time zero of every schedule.
   */
  synchronized long sourceStarts(long inBatch) {
    long nowNs = System.nanoTime();
    if (inBatch > flowing) {
      flowing = inBatch;
      flowingSinceNs = nowNs;
      gapMs = anySourceStarted ? (nowNs - endOrderedNs) / 1e6 : 0;
    }
    if (!anySourceStarted) {
      anySourceStarted = true;
      startedAtNs = nowNs;
    }
    notifyAll();
    return startedAtNs;
  }

  /** How long (ms) no source read at the last boundary, which may still last, and for how long (ms) they have since. */
  public synchronized String lastBoundary() {
    long nowNs = System.nanoTime();
    boolean lasts = anySourceStarted && orders.endBatch() >= flowing;
    return Json.text(
        lasts ? List.of((nowNs - endOrderedNs) / 1e6, 0.0) : List.of(gapMs, (nowNs - flowingSinceNs) / 1e6));
  }

  /** Waits until a source reads in this batch or a later one. */
  public synchronized boolean awaitFlowing(long inBatch, long timeoutMs) throws InterruptedException {
    return await(() -> flowing >= inBatch, timeoutMs);
  }

  synchronized void report(String executor, String json) {
    if (Reports.isDone(json)) {
      dones.add(json);
      notifyAll();
      return;
    }
    if (Reports.isFull(json)) {
      quieten();
      return;
    }
    reports.add(new Said(executor, json));
    Reports.keepFew(reports, Said::json);
  }

  /**
   * What the thread that watches a flow asks for ten times a second, in one crossing into Python: the reports since the last
   * call, each with its executor, the executors that are lost, and whether the run is exhausted.
   */
  public synchronized String look() {
    ObjectNode seen = Json.MAPPER.createObjectNode();
    ArrayNode all = seen.putArray("reports");
    for (Said one : reports) {
      all.addObject().put("executor", one.executor()).putRawValue("said", new RawValue(one.json()));
    }
    reports.clear();
    return Json.text(seen.put("lost", lostExecutors()).put("exhausted", isExhausted()));
  }
}
