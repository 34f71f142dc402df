package org.penstock.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.util.RawValue;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.TaskContext;
import org.apache.spark.penstock.Handovers;
import org.apache.spark.sql.Row;
import org.apache.spark.util.TaskCompletionListener;

/**
 * One replica of a unit in one Spark task: moves envelopes between Spark and the Python workers of its tasks, full
 * duplex, and turns the end of the input into a flush of every task in order. That end is the commit barrier.
 * Calls go one way: a pump calls the hosts of its tasks, these call it back only through `TaskHost.Unit`, and what is on its
 * way out waits in a queue that calls nobody.
 */
final class Pump implements TaskHost.Unit {
  private static final long JOIN_MS = 10_000;
  private static final long BEHIND_BYTES = 1 << 14; // twice what a receiver of small items may have before it says that it is done
  private static final long FOREVER_MS = Long.MAX_VALUE / 4_000_000L;

  private final RunSpec run;
  private final int replica;
  private final int pool;
  private final long batch;
  private final SourceOrder source; // null in every layer but the first
  private final TaskHost[] tasks;
  private final Outbound out = new Outbound();
  private final AtomicInteger tasksLeft;
  private final List<Thread> threads = new ArrayList<>();
  private final Agent agent = Agent.current();
  private final Workers workers;
  private final AtomicReference<Runnable> feeder = new AtomicReference<>();
  private final AtomicBoolean inputEnded = new AtomicBoolean();
  private volatile boolean closed;
  private volatile boolean started;
  private volatile String sourceNews;
  private volatile Channels channels; // null where commits are boundaries
  private volatile TaskContext context;
  private long newsLookedAt; // by the agent's thread alone
  private boolean behind; // by the same
  private volatile Inbox<Object> inbox; // where rows wait before the feeder takes them; null if that is Spark's affair

  Pump(RunSpec run, UnitSpec unit, int replica, long batch, SourceOrder source) throws Exception {
    this.run = run;
    this.replica = replica;
    this.pool = unit.pool();
    this.batch = batch;
    this.source = source;
    this.workers = agent.workers(run);
    this.tasks = new TaskHost[unit.tasks().length];
    this.tasksLeft = new AtomicInteger(tasks.length);
    for (int i = 0; i < tasks.length; i++) {
      tasks[i] = new TaskHost(this, i, unit.tasks()[i], unit.feeds()[i]);
    }
    for (TaskHost task : tasks) {
      for (int fed : task.feeds()) {
        tasks[fed].addInput();
      }
    }
  }

  /**
   * Attaches the pump to its Spark task and starts the workers that this replica needs now. `feeder` reads the input;
   * it is started with the first worker, or when the batch ends: Spark's reader looks for rows a hundred times a second,
   * which a replica that nobody sends to can do without.
   */
  void start(TaskContext context, Runnable feeder) throws Exception {
    this.context = context;
    inbox = Handovers.inbox(context);
    Handovers.setBehind(context, this::unacknowledgedBytes);
    Handovers.setShortcut(context, this::deliverAtOnce);
    this.feeder.set(feeder);
    context.addTaskCompletionListener((TaskCompletionListener) done -> close());
    agent.refresh(run.id());
    align();
    for (TaskHost task : tasks) {
      if (needsWorker(task) || workers.keeps(task.task(), replica, batch)) {
        task.activate();
        feed();
      }
    }
    if (channels != null) {
      feed(); // marks come to replicas that nobody sends to as well
    }
    started = true;
    agent.register(this);
  }

  private void align() {
    Orders now = agent.orders(run.id());
    Channels known = now == null ? null : new Channels(now.switches());
    if (known == null || !known.areMarked()) {
      return;
    }
    channels = known;
    for (TaskHost task : tasks) {
      task.align(known.exact(task.task()), now.epochs().before(), known.into(task.task(), replica));
    }
  }

  private void feed() {
    Runnable waiting = feeder.getAndSet(null);
    if (waiting != null) {
      apart("feed-" + tasks[0].task(), waiting);
    }
  }

  /** An active replica has a worker for each task, save those that are chained to another. */
  private boolean needsWorker(TaskHost task) {
    Orders now = agent.orders(run.id());
    if (now == null) {
      return false;
    }
    return replica < now.active().getOrDefault(task.task(), 0) && !now.chained().contains(task.task());
  }

  /** Called by the agent, often: follows activation, and sees to the end of the batch when its time has come. */
  void tend() {
    if (!started || closed) {
      return;
    }
    try {
      Orders now = agent.orders(run.id());
      if (now != null && source != null && channels != null) {
        tasks[0].order(now.epochs());
      }
      if (now != null && now.endBatch() >= batch) {
        feed();
        if (source != null) {
          endInput();
        }
      }
      for (TaskHost task : tasks) {
        if (needsWorker(task)) {
          task.activate();
          feed();
        } else {
          task.retireIfIdle();
        }
      }
    } catch (Exception cannotStart) {
      failWith(cannotStart);
    }
  }

  /**
   * Called by the agent's thread: tells workers whether those they send to come after. Nobody looks while nothing is sent, unless
   * they did not come after at the last look: a sender that waits for room sends nothing either.
   */
  void tellBehind() {
    if (!started || closed) {
      return;
    }
    long news = out.news();
    boolean sends = news != newsLookedAt;
    newsLookedAt = news;
    behind = (sends || behind) && Handovers.anyHasMore(context, BEHIND_BYTES);
    for (TaskHost task : tasks) {
      WorkerProcess worker = task.reads();
      if (worker != null) {
        worker.tellBehind(behind);
      }
    }
  }

  /** Hands the envelopes of a row, which arrived at that time, to the tasks they are for. */
  void deliver(List<byte[]> envelopes, long arrivedNs) throws IOException, InterruptedException {
    int from = 0;
    while (from < envelopes.size()) {
      int place = Envelopes.place(envelopes.get(from));
      int to = from + 1;
      while (to < envelopes.size() && Envelopes.place(envelopes.get(to)) == place) {
        to++;
      }
      tasks[place].deliver(envelopes.subList(from, to), arrivedNs);
      from = to;
    }
  }

  /**
   * In the thread of whoever sends a row: hands its envelopes to their tasks, if none of them has to be waited for. Marks are
   * left to the feeder, because much may be to be done then.
   */
  private boolean deliverAtOnce(Object row) throws InterruptedException {
    ByteBuffer bundle = Handovers.bundle(row);
    if (!tasks[Envelopes.firstPlace(bundle)].takesAtOnce(bundle.remaining(), 1)) {
      return false; // before anything is copied
    }
    List<byte[]> envelopes = Envelopes.split(bundle);
    int bytes = 0;
    for (byte[] envelope : envelopes) {
      bytes += envelope.length;
      if (Envelopes.isMark(envelope) || !tasks[Envelopes.place(envelope)].takesAtOnce(bytes, envelopes.size())) {
        return false;
      }
    }
    try {
      deliver(envelopes, System.nanoTime());
    } catch (IOException | RuntimeException problem) {
      failWith(problem); // it is the receiver's
    }
    return true;
  }

  @Override
  public void route(int place, int target, byte[] envelope) throws IOException, InterruptedException {
    if (place == Wire.REMOTE) {
      out.put(new Envelopes.Out(target, envelope));
    } else if (place == Wire.BALANCED) {
      out.put(Envelopes.Out.balanced(target, envelope));
    } else {
      tasks[place].deliver(List.of(envelope), System.nanoTime());
    }
  }

  /** When the row that the feeder took last came. */
  long arrivedNs() {
    return inbox == null ? System.nanoTime() : inbox.takenPutNs();
  }

  private long unacknowledgedBytes() {
    long bytes = 0;
    for (TaskHost task : tasks) {
      bytes += task.unacknowledgedBytes();
    }
    return bytes;
  }

  @Override
  public boolean waiting(TaskHost task, Queue queue) {
    if (inbox == null) {
      return false;
    }
    inbox.visit((row, putNs) -> queue.addBundle(Handovers.bundle(row), putNs));
    return true;
  }

  @Override
  public void join(TaskHost host, WorkerProcess head, JsonNode names) {
    Set<String> wanted = new HashSet<>();
    names.forEach(name -> wanted.add(name.asText()));
    List<TaskHost> joining = new ArrayList<>(); // in the order in which they feed each other
    for (TaskHost task : tasks) {
      if (wanted.contains(task.task())) {
        joining.add(task);
      } else {
        task.leave(host);
      }
    }
    join(host, head, joining.iterator());
  }

  /** Their own workers end, one after the other, then the head is told. */
  private void join(TaskHost host, WorkerProcess head, Iterator<TaskHost> joining) {
    if (joining.hasNext()) {
      joining.next().moveTo(host, () -> join(host, head, joining));
    } else {
      head.tellJoined();
    }
  }

  @Override
  public void part(TaskHost host) {
    for (TaskHost task : tasks) {
      if (task != host) {
        task.leave(host);
      }
    }
  }

  /** No monitor is held in here: the agent may be tending this pump while it waits for the driver. */
  void endInput() throws Exception {
    if (inputEnded.getAndSet(true)) {
      return;
    }
    agent.refresh(run.id());
    for (TaskHost task : tasks) {
      task.inputEnded();
    }
  }

  @Override
  public long moving() {
    Orders now = agent.orders(run.id());
    return now == null ? 0 : now.moving();
  }

  @Override
  public boolean isMoved(TaskHost task) {
    Orders now = agent.orders(run.id());
    return now != null && now.moved().contains(task.task());
  }

  @Override
  public String moves(long epoch) {
    Orders now = agent.orders(run.id());
    return now != null && now.moving() == epoch ? now.switches() : "";
  }

  @Override
  public void full(TaskHost task) {
    workers.report(Reports.full(task.task(), replica));
  }

  @Override
  public void marked(TaskHost task, long epoch, boolean valid, String said) throws IOException, InterruptedException {
    multicast(task, epoch);
    done(Reports.done(task.task(), replica, pool, epoch, valid, false, said));
  }

  /** The task goes on meanwhile. If its files cannot be had where they belong, the batch fails. */
  private CompletableFuture<Void> done(String report) {
    return workers.reportWhenUploaded(report).whenComplete((told, problem) -> {
      if (problem != null) {
        Throwable cause = problem instanceof CompletionException ? problem.getCause() : problem;
        failWith(new FlowException("state cannot be written to the checkpoint: " + cause.getMessage()));
      }
    });
  }

  /** To all replicas that the task may send to, in the thread that brings what it sends. */
  private void multicast(TaskHost task, long epoch) throws IOException, InterruptedException {
    for (Channels.Outlet outlet : channels.outOf(task.task())) {
      int first = outlet.twin() ? replica : 0;
      int end = outlet.twin() ? replica + 1 : outlet.pool();
      for (int receiver = first; receiver < end; receiver++) {
        int partition = outlet.first() + receiver;
        byte[] mark =
            Envelopes.mark(outlet.layer(), partition, outlet.place(), outlet.stream(), replica, epoch);
        if (outlet.local()) {
          tasks[outlet.place()].deliver(List.of(mark), System.nanoTime());
        } else {
          out.putMark(new Envelopes.Out(outlet.via() < 0 ? partition : outlet.via(), mark));
        }
      }
    }
  }

  /** Nothing more comes of the task in this batch: a last mark stands for all that will be ordered, and so does its report. */
  private void markLast(TaskHost task, String news) {
    try {
      multicast(task, Alignment.LAST);
      JsonNode all = news == null ? null : Json.parse(news);
      JsonNode said = all == null ? null : all.path("source").has("positions") ? all.get("source") : all.get("marked");
      String text = task.told(said == null ? null : Json.text(said));
      done(Reports.done(task.task(), replica, pool, task.answered() + 1, true, true, text)).get();
    } catch (ExecutionException failed) {
      // The batch has failed by that.
    } catch (InterruptedException over) {
      Thread.currentThread().interrupt();
    } catch (IOException problem) {
      failWith(problem);
    }
  }

  @Override
  public void ended(TaskHost task, String news) {
    if (channels != null) {
      markLast(task, news);
    }
    if (source != null && task == tasks[0]) {
      sourceEnded(news);
    }
    for (int fed : task.feeds()) {
      tasks[fed].inputEnded();
    }
    if (tasksLeft.decrementAndGet() == 0) {
      out.finish();
    }
  }

  /** A source has ended its part of the batch: the positions of its splits, and perhaps that nothing will come any more. */
  private void sourceEnded(String news) {
    if (news == null) {
      return;
    }
    JsonNode reached = Json.parse(news).get("source");
    sourceNews = Json.text(reached);
    try {
      if (reached.get("done").asBoolean()) {
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

  @Override
  public Workers workers() {
    return workers;
  }

  @Override
  public int replica() {
    return replica;
  }

  @Override
  public long batch() {
    return batch;
  }

  @Override
  public boolean exact(TaskHost task) {
    Orders now = agent.orders(run.id());
    return now != null && new Channels(now.switches()).exact(task.task());
  }

  @Override
  public boolean closed() {
    return closed;
  }

  @Override
  public boolean closing() {
    Orders now = agent.orders(run.id());
    return now != null && now.closing();
  }

  @Override
  public String startOrder(TaskHost task, String mark) throws IOException {
    Orders now = agent.orders(run.id());
    if (now == null) {
      throw new IOException("the run is over");
    }
    ObjectNode order = Json.MAPPER.createObjectNode();
    order.put("task", task.task()).put("replica", replica).put("batch", batch).put("epoch", task.answered());
    order.putRawValue("switches", new RawValue(now.switches()));
    order.putRawValue("link", new RawValue(agent.link()));
    if (source != null && task == tasks[0]) {
      ObjectNode reading = order.putObject("source");
      reading.putRawValue("positions", new RawValue(mark == null ? source.positions() : mark));
      reading.putRawValue("run_positions", new RawValue(source.runPositions()));
      try {
        reading.put("started_at_ns", agent.sourceStarts(run.id(), batch));
      } catch (Exception unreachable) {
        throw new IOException("the driver does not answer", unreachable);
      }
    }
    return Json.text(order);
  }

  @Override
  public void fail(String report) {
    workers.report(report);
    JsonNode failed = Json.parse(report).get("failed");
    out.fail(new FlowBroken("task " + failed.get("task").asText() + ": " + failed.get("problem").asText()));
  }

  @Override
  public void failWith(Throwable problem) {
    out.fail(problem);
  }

  /** The task thread reads from the worker of a unit's only task; workers of several have a thread each. */
  @Override
  public void reads(TaskHost task, WorkerProcess worker) {
    if (tasks.length == 1) {
      out.wake();
    } else {
      apart("read-" + task.task(), () -> {
        while (task.read(worker)) {
          // Until the worker ends.
        }
      });
    }
  }

  @Override
  public void apart(String what, Runnable body) {
    Thread thread = Zygote.daemon("penstock-" + what + "-" + replica, body);
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
          List<Row> more = take(FOREVER_MS);
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
    long deadlineNs = System.nanoTime() + timeoutMs * 1_000_000L;
    try {
      while (true) {
        long news = out.news();
        List<Envelopes.Out> outs = out.take();
        if (outs == null) {
          return null;
        }
        if (!outs.isEmpty()) {
          return Envelopes.rows(
              Balance.isNeeded(outs) ? Balance.settled(outs, Handovers.loads(context)) : outs);
        }
        if (!readOnlyTask()) {
          out.awaitNews(news, deadlineNs);
          if (System.nanoTime() >= deadlineNs && out.news() == news) {
            return List.of();
          }
        }
      }
    } catch (InterruptedException killed) {
      Thread.currentThread().interrupt();
      throw new FlowException("the task was cancelled");
    }
  }

  /** In the task thread: waits for the worker of the unit's only task; false if there is none to wait for. */
  private boolean readOnlyTask() throws InterruptedException {
    WorkerProcess worker = tasks.length == 1 ? tasks[0].reads() : null;
    if (worker == null || !out.beginReading()) {
      return false;
    }
    try {
      tasks[0].read(worker);
    } finally {
      out.endReading();
    }
    return true;
  }

  /** Runs at the end of the Spark task, whatever the end was, before Spark closes what the feeder reads from. */
  private void close() {
    closed = true;
    agent.unregister(this);
    out.fail(new FlowException("the task has ended"));
    for (TaskHost task : tasks) {
      task.close();
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
