package org.penstock.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.util.TaskCompletionListener;

/**
 * One replica of a unit in one Spark task: moves envelopes between Spark and the Python workers of its stages, full
 * duplex, and turns the end of the input into a flush of every stage in order. That end is the commit barrier.
 */
final class Pump {
  private static final long JOIN_MS = 10_000;

  private final RunSpec run;
  private final int replica;
  private final long batch;
  private final SourceOrder source; // null in every layer but the first
  private final Stage[] stages;
  private final OutQueue out = new OutQueue();
  private final AtomicInteger stagesLeft;
  private final List<Thread> threads = new ArrayList<>();
  private final Agent agent = Agent.current();
  private final Workers workers;
  private final AtomicReference<Runnable> feeder = new AtomicReference<>();
  private final AtomicBoolean inputEnded = new AtomicBoolean();
  private volatile boolean closed;
  private volatile boolean started;
  private volatile String sourceNews;

  Pump(RunSpec run, UnitSpec unit, int replica, long batch, SourceOrder source) throws Exception {
    this.run = run;
    this.replica = replica;
    this.batch = batch;
    this.source = source;
    this.workers = agent.workers(run);
    this.stages = new Stage[unit.tasks().length];
    this.stagesLeft = new AtomicInteger(stages.length);
    for (int i = 0; i < stages.length; i++) {
      stages[i] = new Stage(this, i, unit.tasks()[i], unit.feeds()[i]);
    }
    for (Stage stage : stages) {
      for (int fed : stage.feeds()) {
        stages[fed].addInput();
      }
    }
  }

  /**
   * Attaches the pump to its Spark task and starts the workers that this replica needs now. `feeder` reads the input;
   * it is started with the first worker, or when the batch ends: Spark's reader looks for rows a hundred times a second,
   * which a replica that nobody sends to can do without.
   */
  void start(TaskContext context, Runnable feeder) throws Exception {
    this.feeder.set(feeder);
    context.addTaskCompletionListener((TaskCompletionListener) done -> close());
    agent.refresh(run.id());
    for (Stage stage : stages) {
      if (needsWorker(stage) || workers.keeps(stage.task(), replica)) {
        stage.activate();
        feed();
      }
    }
    started = true;
    agent.register(this);
  }

  private void feed() {
    Runnable waiting = feeder.getAndSet(null);
    if (waiting != null) {
      spawn("penstock-feed-" + stages[0].task() + "-" + replica, waiting);
    }
  }

  /** An active replica has a worker for each task, save those that are chained to another. */
  private boolean needsWorker(Stage stage) {
    Settings now = agent.settings(run.id());
    if (now == null) {
      return false;
    }
    return replica < now.active().getOrDefault(stage.task(), 0) && !now.chained().contains(stage.task());
  }

  /** Called by the agent, often: follows activation, and sees to the end of the batch when its time has come. */
  void tend() {
    if (!started || closed) {
      return;
    }
    try {
      Settings now = agent.settings(run.id());
      if (now != null && now.endBatch() >= batch) {
        feed();
        if (source != null) {
          endInput();
        }
      }
      for (Stage stage : stages) {
        if (needsWorker(stage)) {
          stage.activate();
          feed();
        } else {
          stage.retireIfIdle();
        }
      }
    } catch (Exception cannotStart) {
      failWith(cannotStart);
    }
  }

  /** Hands the envelopes of a row to the stages they are for. */
  void deliver(List<byte[]> envelopes) throws IOException, InterruptedException {
    int from = 0;
    while (from < envelopes.size()) {
      int stage = Envelopes.stage(envelopes.get(from));
      int to = from + 1;
      while (to < envelopes.size() && Envelopes.stage(envelopes.get(to)) == stage) {
        to++;
      }
      stages[stage].deliver(envelopes.subList(from, to));
      from = to;
    }
  }

  /** What a worker sent: to another stage of this unit, or out. */
  void route(int stage, int target, byte[] envelope) throws IOException, InterruptedException {
    if (stage == Wire.REMOTE) {
      out.put(new Envelopes.Out(target, envelope));
    } else {
      stages[stage].deliver(List.of(envelope));
    }
  }

  /** A worker wants to run these tasks itself: their own workers end, one after the other, then it is told. */
  void join(WorkerProcess head, Iterator<JsonNode> tasks) {
    if (!tasks.hasNext()) {
      head.tellJoined();
      return;
    }
    String task = tasks.next().asText();
    for (Stage stage : stages) {
      if (stage.task().equals(task)) {
        stage.retire(() -> join(head, tasks));
      }
    }
  }

  /** No monitor is held in here: the agent may be tending this pump while it waits for the driver. */
  void endInput() throws Exception {
    if (inputEnded.getAndSet(true)) {
      return;
    }
    agent.refresh(run.id());
    for (Stage stage : stages) {
      stage.inputEnded();
    }
  }

  void stageEnded(Stage stage) {
    for (int fed : stage.feeds()) {
      stages[fed].inputEnded();
    }
    if (stagesLeft.decrementAndGet() == 0) {
      out.finish();
    }
  }

  /** A source has ended its part of the batch: its offset, and perhaps that nothing will come any more. */
  void sourceEnded(int stage, String news) {
    if (source == null || stage != 0) {
      return;
    }
    JsonNode position = Reports.parse(news).get("source");
    sourceNews = Reports.text(position);
    try {
      if (position.get("done").asBoolean()) {
        agent.sourceDone(run.id(), source.partition());
      }
      endInput();
    } catch (Exception lost) {
      failWith(lost);
    }
  }

  String sourceNews() {
    if (sourceNews == null) {
      throw new FlowException("a source was cut off before it had said where it stands");
    }
    return sourceNews;
  }

  Workers workers() {
    return workers;
  }

  int replica() {
    return replica;
  }

  boolean closed() {
    return closed;
  }

  boolean closing() {
    Settings now = agent.settings(run.id());
    return now != null && now.closing();
  }

  /** The START order of a stage; a source that is started again in the same batch goes on at its mark. */
  String startOrder(int stage, String mark) throws IOException {
    Settings now = agent.settings(run.id());
    if (now == null) {
      throw new IOException("the run is over");
    }
    StringBuilder order = new StringBuilder();
    order.append("{\"task\":\"").append(stages[stage].task()).append("\",\"replica\":").append(replica);
    order.append(",\"settings\":").append(now.json());
    order.append(",\"exchange\":").append(agent.exchange());
    if (source != null && stage == 0) {
      try {
        order.append(",\"source\":{\"position\":").append(mark == null ? source.offset() : mark);
        order.append(",\"run_position\":").append(source.runOffset());
        order.append(",\"started_at_epoch_ns\":").append(agent.sourceStarts(run.id(), batch)).append("}");
      } catch (Exception unreachable) {
        throw new IOException("the driver does not answer", unreachable);
      }
    }
    return order.append("}").toString();
  }

  /** Fails the query; `report` is a JSON text for the driver, its problem also becomes the message of the task. */
  void fail(String report) {
    workers.report(report);
    JsonNode failed = Reports.parse(report).get("failed");
    out.fail(new FlowException("task " + failed.get("task").asText() + ": " + failed.get("problem").asText()));
  }

  void failWith(Throwable problem) {
    out.fail(problem);
  }

  /** Reads from a worker: the task thread does, if it has only this one; otherwise a thread of its own. */
  void read(String task, OutQueue.Direct worker) {
    if (stages.length == 1) {
      out.attach(worker);
    } else {
      spawn("penstock-read-" + task + "-" + replica, () -> {
        while (worker.more()) {
          // Until the worker ends.
        }
      });
    }
  }

  void spawn(String name, Runnable body) {
    Thread thread = Zygote.daemon(name, body);
    synchronized (threads) {
      threads.removeIf(done -> !done.isAlive());
      threads.add(thread);
    }
  }

  /** Rows for the next layer; blocks until there is one or the batch is over. */
  Iterator<Row> rows() {
    return new Iterator<>() {
      private Iterator<Row> ready = List.<Row>of().iterator();
      private boolean over;

      @Override
      public boolean hasNext() {
        while (!over && !ready.hasNext()) {
          List<Row> more = take(Long.MAX_VALUE / 2_000_000L);
          over = more == null;
          ready = over ? ready : more.iterator();
        }
        return !over;
      }

      @Override
      public Row next() {
        hasNext();
        return ready.next();
      }
    };
  }

  /** The rows that are ready; none after the timeout; null when the batch is over. */
  List<Row> take(long timeoutMs) {
    try {
      List<Envelopes.Out> outs = out.take(timeoutMs);
      return outs == null ? null : outs.isEmpty() ? List.of() : Envelopes.rows(outs);
    } catch (InterruptedException killed) {
      Thread.currentThread().interrupt();
      throw new FlowException("the task was cancelled");
    }
  }

  /** Runs at the end of the Spark task, whatever the end was, before Spark closes what the feeder reads from. */
  private void close() {
    closed = true;
    agent.unregister(this);
    out.fail(new FlowException("the task has ended"));
    for (Stage stage : stages) {
      stage.close();
    }
    List<Thread> left;
    synchronized (threads) {
      left = new ArrayList<>(threads);
    }
    long deadline = System.nanoTime() + JOIN_MS * 1_000_000L;
    for (Thread thread : left) {
      while (thread.isAlive() && System.nanoTime() < deadline) {
        thread.interrupt();
        try {
          thread.join(50);
        } catch (InterruptedException again) {
          // Spark interrupts a task that it kills; the threads must be gone all the same.
        }
      }
    }
  }
}
