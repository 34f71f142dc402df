package org.penstock.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One task of a unit in one partition: keeps its worker running, feeds it, and reads what it says. `Life` says what is to be
 * done when; this class does it.
 * The lock `sending` orders the frames into the worker and guards its life. It may be held while a write waits for a busy
 * worker, so nothing that reads from a worker ever takes it, save when that worker has ended or is dead.
 */
final class TaskHost {
  private static final long RETIRE_AFTER_NS = 1_000_000_000L;
  private static final boolean FOR_GOOD = true;
  // What a worker's socket takes though nobody reads from it.
  private static final int AT_ONCE_ENVELOPES = 128;
  private static final long AT_ONCE_BYTES = 1 << 16;

  /** What is around the task: the other tasks of its unit and the way out. */
  interface Unit {
    int replica();

    long batch();

    boolean closed();

    /** Whether state depends on the task: then a successor could not go on where its worker has died. */
    boolean exact(TaskHost task);

    /** Whether the batch that ends is the last of the run. */
    boolean closing();

    Workers workers();

    /** The START order of a task; a source that is started again in the same batch goes on at its mark. */
    String startOrder(TaskHost task, String mark) throws IOException;

    /** Runs this in a thread of its own, which ends with the Spark task. */
    void apart(String what, Runnable body);

    /** A worker is there to be read from. */
    void reads(TaskHost task, WorkerProcess worker);

    /** What a worker sent: to the task at another place of this unit, or out. */
    void route(int place, int target, byte[] envelope) throws IOException, InterruptedException;

    /** Adds what waits for a task in the shuffle; false if nobody knows that. */
    boolean waiting(TaskHost task, Queue queue);

    /** A worker of that task runs these itself from now on, and no others: it is told when their own workers have ended. */
    void join(TaskHost host, WorkerProcess head, JsonNode tasks);

    /** The worker of that task runs no other from now on. */
    void part(TaskHost host);

    /** The epoch with which keys change hands, 0 if they do not. */
    long moving();

    /** Whether keys of this task do. */
    boolean isMoved(TaskHost task);

    /** The switches that say so, for the mark of that epoch; empty for that of another. */
    String moves(long epoch);

    /** More waits before the task for the end of an epoch than should: sources are to wait, too. */
    void full(TaskHost task);

    /** The task has written down all before a mark; `said` is what its worker says of it, null without one. */
    void marked(TaskHost task, long epoch, boolean valid, String said) throws IOException, InterruptedException;

    /** The task has ended its part of the batch; `news` is what its worker said last, null without one. */
    void ended(TaskHost task, String news);

    /** Fails the query; `report` is a JSON text for the driver. */
    void fail(String report);

    void failWith(Throwable problem);
  }

  private final Unit unit;
  private final int place;
  private final String task;
  private final int[] feeds;
  private final Unacknowledged unacknowledged = new Unacknowledged();
  private final ReentrantLock sending = new ReentrantLock();
  private final Condition ended = sending.newCondition();
  private final Life life = new Life();
  private final List<Runnable> waiting = new ArrayList<>(); // for the end of a worker that is let go
  private volatile WorkerProcess worker;
  private final AtomicReference<TaskHost> host = new AtomicReference<>(); // whose worker runs this task; null if it has its own
  private long startedNs;
  private int openInputs = 1; // the shuffle; each task of the unit that feeds this one adds itself
  private volatile String mark; // a source's latest {split: {"ordinal", "offset"}} up to which everything was shipped
  private volatile long lastInputNs = System.nanoTime();
  private Alignment alignment; // null where commits are boundaries
  private boolean aligns; // whether committed state or output depends on the task, where commits are marks
  private boolean unmarked; // whether the worker was given something since the last mark
  private final Map<Long, Boolean> given = new ConcurrentHashMap<>(); // marks that the worker has, and whether they are valid
  private long ordered; // of a source: the last epoch that its worker was told to mark
  private long quiet; // of a source: the epoch whose end its worker waits for, else 0
  private volatile long answered;
  private final Untold untold = new Untold();
  private volatile long holds; // the epoch whose end its worker waits for with items that it has acknowledged, else 0

  TaskHost(Unit unit, int place, String task, int[] feeds) {
    this.unit = unit;
    this.place = place;
    this.task = task;
    this.feeds = feeds;
  }

  String task() {
    return task;
  }

  /** The places of the tasks that this one feeds inside the unit. */
  int[] feeds() {
    return feeds;
  }

  /** From now on marks are aligned; `epoch` is the last one before. */
  void align(boolean exact, long epoch, List<Integer> channels) {
    aligns = exact;
    alignment = new Alignment(exact, epoch, channels, Alignment.LIMIT_BYTES);
    ordered = answered = epoch;
  }

  /** The last epoch that was answered for. */
  long answered() {
    return answered;
  }

  /** Has the worker of a source mark the epoch that is ordered, and go on when one is over that it waits for. */
  void order(Epochs now) {
    sending.lock();
    try {
      if (life.state() != Life.State.RUNNING) {
        return; // one that has ended has sent a mark that stands for all
      }
      if (now.ordered() > ordered) {
        ordered = now.ordered();
        quiet = now.quiet() ? ordered : 0;
        write(Wire.mark(0, ordered, now.quiet(), now.committed(), unit.moves(ordered)));
      } else if (now.quiet() && quiet == 0 && now.over() < ordered) { // it has become so since
        quiet = ordered;
        write(Wire.ofEpoch(Wire.WAIT, quiet));
      }
      if (quiet > 0 && now.over() >= quiet) {
        write(Wire.ofEpoch(Wire.GO, quiet));
        quiet = 0;
      }
    } finally {
      sending.unlock();
    }
  }

  void addInput() {
    openInputs++;
  }

  /** Starts the worker if there is none: the replica was activated. */
  void activate() throws IOException {
    if (worker != null) {
      return; // without the lock: it may be held for long while that worker is busy
    }
    sending.lock();
    try {
      if (host.get() == null) {
        need();
      }
    } finally {
      sending.unlock();
    }
  }

  private Life.Action need() throws IOException {
    if (unit.closed()) {
      return Life.Action.NOTHING;
    }
    Life.Action action = life.on(Life.Event.NEEDED);
    if (action == Life.Action.START) {
      start();
    }
    return action;
  }

  /** A worker that dies at birth counts like one that dies later. It says by itself which tasks it runs besides. */
  private void start() throws IOException {
    unit.part(this);
    WorkerProcess fresh = null;
    while (fresh == null) {
      try {
        fresh = unit.workers().acquire(task, unit.replica(), unit.batch());
      } catch (IOException failed) {
        Epitaph epitaph = new Epitaph(task, "it died at once");
        if (unit.closed() || Thread.currentThread().isInterrupted() || !unacknowledged.died(0, epitaph)) {
          throw failed;
        }
      }
    }
    startedNs = System.nanoTime();
    worker = fresh;
    if (unit.closed()) { // close() may have looked before it was there
      unit.workers().dismiss(fresh);
      throw new IOException("the task is over");
    }
    write(Wire.frame(Wire.START, unit.startOrder(this, mark).getBytes(StandardCharsets.UTF_8)));
    fresh.tellQueue(this::queue);
    unit.reads(this, fresh);
  }

  /** What waits behind the input that the worker took last, as JSON; null if nobody knows all of it. */
  private String queue(long taken) {
    Queue queue = new Queue(place);
    if (!unit.waiting(this, queue)) {
      return null;
    }
    unacknowledged.waiting(taken, queue);
    return queue.json(System.nanoTime());
  }

  /** What the worker was given and has not acknowledged. */
  long unacknowledgedBytes() {
    return unacknowledged.bytes();
  }

  /** Whether its worker is there and takes so many bytes, in so many envelopes, without anybody waiting for it. */
  boolean takesAtOnce(int bytes, int envelopes) {
    return worker != null
        && life.state() == Life.State.RUNNING
        && unacknowledged.bytes() + bytes <= AT_ONCE_BYTES
        && unacknowledged.envelopes() + envelopes <= AT_ONCE_ENVELOPES;
  }

  void deliver(List<byte[]> envelopes, long arrivedNs) throws IOException, InterruptedException {
    if (alignment == null) {
      give(envelopes, arrivedNs);
      return;
    }
    synchronized (alignment) { // those of one channel come by one thread, but a task may have several
      alignment.moves(unit.moving(), unit.isMoved(this));
      for (Alignment.Step step : alignment.arrive(envelopes, arrivedNs)) {
        if (step.epoch() > 0) {
          mark(step.epoch(), step.valid());
        } else {
          give(step.envelopes(), step.arrivedNs());
        }
      }
      if (alignment.takeFull()) {
        unit.full(this);
      }
    }
  }

  /** A mark has its place between envelopes. Without a worker the bridge answers. */
  private void mark(long epoch, boolean valid) throws IOException, InterruptedException {
    sending.lock();
    try {
      while (life.state() == Life.State.RETIRING && !unit.closed()) {
        ended.await();
      }
      if (unit.closed()) {
        return;
      }
      if (life.hasWorker()) {
        given.put(epoch, valid);
        unmarked = false;
        holds = epoch == unit.moving() && unit.isMoved(this) ? epoch : holds;
        write(unacknowledged.giveMark(epoch, unit.moves(epoch)));
        return;
      }
      answered = epoch;
    } finally {
      sending.unlock();
    }
    unit.marked(this, epoch, valid, told(null));
  }

  /** What its workers have said of an epoch at their end is told with it. */
  String told(String said) {
    return untold.with(said);
  }

  private void give(List<byte[]> envelopes, long arrivedNs) throws IOException, InterruptedException {
    unacknowledged.awaitRoom();
    sending.lock();
    try {
      while (need() == Life.Action.WAIT) {
        ended.await();
      }
      if (unit.closed()) {
        return; // the batch is abandoned, and will be replayed
      }
      if (life.state() != Life.State.RUNNING) {
        throw new IOException("an envelope came to " + task + " after the end of its input");
      }
      lastInputNs = System.nanoTime();
      unmarked = true;
      ByteBuffer[] frames = new ByteBuffer[envelopes.size()];
      int size = 0;
      for (int i = 0; i < frames.length; i++) {
        frames[i] = unacknowledged.give(envelopes.get(i), arrivedNs);
        size += frames[i].remaining();
      }
      write(frames.length == 1 ? frames[0] : joined(frames, size));
    } finally {
      sending.unlock();
    }
  }

  private static ByteBuffer joined(ByteBuffer[] frames, int size) {
    ByteBuffer all = ByteBuffer.allocate(size);
    for (ByteBuffer frame : frames) {
      all.put(frame);
    }
    return all.flip();
  }

  /** A worker that dies meanwhile is noticed by its reader, and its successor gets everything again. */
  private void write(ByteBuffer frame) {
    WorkerProcess to = worker;
    if (to == null) {
      return;
    }
    try {
      to.send(frame);
    } catch (IOException dying) {
      // See above.
    }
  }

  private void sendEnd(boolean forGood) {
    write(Wire.frame(Wire.END, new byte[] {(byte) (forGood ? 1 : 0)}));
  }

  /** One of the inputs has ended; after the last one the worker is asked to finish the batch. */
  void inputEnded() {
    Life.Action action = Life.Action.NOTHING;
    sending.lock();
    try {
      if (--openInputs == 0) {
        action = life.on(Life.Event.INPUT_ENDED);
        if (action == Life.Action.SEND_END) {
          sendEnd(unit.closing());
        }
      }
    } finally {
      sending.unlock();
    }
    if (action == Life.Action.FINISH) {
      unit.ended(this, null);
    }
  }

  /**
   * A replica that is no longer active finishes what it has, says good-bye, and its process ends. Where commits are marks, and
   * depend on it, it ends behind one: what it has written since would be told to nobody.
   */
  void retireIfIdle() {
    if (System.nanoTime() - lastInputNs < RETIRE_AFTER_NS || !sending.tryLock()) {
      return;
    }
    try {
      boolean untold = aligns && unmarked;
      if (!untold && life.hasWorker() && unacknowledged.size() == 0 && life.on(Life.Event.UNNEEDED) == Life.Action.SEND_LAST) {
        sendEnd(FOR_GOOD);
      }
    } finally {
      sending.unlock();
    }
  }

  /** The worker of another task runs this one: its own finishes what it has and ends; `then` runs when it has. */
  void moveTo(TaskHost other, Runnable then) {
    host.set(other);
    sending.lock();
    try {
      Life.Action action = life.on(Life.Event.UNNEEDED);
      if (action != Life.Action.RELEASE) {
        waiting.add(then);
        if (action == Life.Action.SEND_LAST) {
          sendEnd(FOR_GOOD);
        }
        return;
      }
    } finally {
      sending.unlock();
    }
    then.run();
  }

  /** That one does not run this task any more, if it did. Without the lock: whoever says so may have its own. */
  void leave(TaskHost left) {
    host.compareAndSet(left, null);
  }

  /** The worker to read from, null if there is none now. */
  WorkerProcess reads() {
    return worker;
  }

  /** Deals with the next frames of a worker, at least one; false when it will send nothing more. */
  boolean read(WorkerProcess from) {
    try {
      Wire.Frame frame = from.nextFrame();
      while (frame != null) {
        if (!handle(from, frame)) {
          return false;
        }
        if (!from.hasFrame()) {
          return true;
        }
        frame = from.nextFrame();
      }
    } catch (IOException dead) {
      // Below: the same as a clean end without ENDED.
    } catch (InterruptedException over) {
      Thread.currentThread().interrupt();
      return false;
    } catch (RuntimeException broken) {
      unit.failWith(broken);
      return false;
    }
    if (!Thread.currentThread().isInterrupted()) {
      died(from);
    }
    return false;
  }

  /** False after the last frame. */
  private boolean handle(WorkerProcess from, Wire.Frame frame) throws IOException, InterruptedException {
    ByteBuffer body = frame.body();
    switch (frame.kind()) {
      case Wire.OUT -> {
        unacknowledged.acknowledge(body.getLong());
        int target = body.getInt();
        int place = body.get() & 0xFF;
        byte[] envelope = new byte[body.remaining()];
        body.get(envelope);
        unit.route(place, target, envelope);
      }
      case Wire.ACK -> acknowledge(body);
      case Wire.JOIN -> unit.join(this, from, Json.parse(text(body)));
      case Wire.MARKED -> marked(body);
      case Wire.FULL -> unit.full(this);
      case Wire.AT -> unacknowledged.at(body.getLong(), body.getInt());
      case Wire.FAILED -> {
        unit.fail(text(body));
        return false;
      }
      case Wire.ENDED -> {
        ended(from, text(body));
        return false;
      }
      default -> throw new IOException("a worker of " + task + " sent a frame of kind " + frame.kind());
    }
    return true;
  }

  private static String text(ByteBuffer body) {
    return StandardCharsets.UTF_8.decode(body).toString();
  }

  /** i64 sequence; a source adds its mark. */
  private void acknowledge(ByteBuffer body) {
    unacknowledged.acknowledge(body.getLong());
    if (body.hasRemaining()) {
      mark = text(body);
      unacknowledged.progressed();
    }
  }

  /** i64 acknowledged, i64 epoch, JSON; from a source with its positions, where a successor would go on. */
  private void marked(ByteBuffer body) throws IOException, InterruptedException {
    unacknowledged.acknowledge(body.getLong());
    long epoch = body.getLong();
    String said = text(body);
    JsonNode positions = Json.parse(said).get("positions");
    if (positions != null) {
      mark = Json.text(positions);
      unacknowledged.progressed();
    }
    Boolean valid = given.remove(epoch);
    answered = epoch;
    holds = epoch > holds ? 0 : holds;
    unit.marked(this, epoch, valid == null || valid, told(said));
  }

  private void ended(WorkerProcess from, String news) {
    Life.Action action;
    List<Runnable> released;
    boolean keep;
    sending.lock();
    try {
      if (unacknowledged.size() > 0) {
        throw new IllegalStateException(
            "a worker of " + task + " ended with " + unacknowledged.size() + " envelopes unacknowledged");
      }
      boolean forThisBatch = life.state() == Life.State.RUNNING || life.state() == Life.State.ENDING;
      keep = forThisBatch && !unit.closing();
      action = life.on(Life.Event.ENDED);
      if (action == Life.Action.RELEASE) {
        untold.keep(news);
      }
      worker = null;
      released = new ArrayList<>(waiting);
      waiting.clear();
      ended.signalAll();
    } finally {
      sending.unlock();
    }
    unit.workers().report(news);
    if (keep) {
      unit.workers().keep(from, unit.batch());
    } else {
      unit.workers().dismiss(from);
    }
    if (action == Life.Action.FINISH) {
      unit.ended(this, news);
    }
    released.forEach(Runnable::run);
  }

  /** What replaces a worker must not be what reads from it: a successor that is given much says much meanwhile. */
  private void died(WorkerProcess dead) {
    if (unit.closed()) {
      unit.workers().dismiss(dead);
    } else if (worker == dead) {
      worker = null;
      unit.apart("restart-" + task, () -> replace(dead));
    }
  }

  private void replace(WorkerProcess dead) {
    Epitaph epitaph = unit.workers().epitaph(dead);
    unit.workers().dismiss(dead);
    sending.lock();
    try {
      if (unit.closed()) {
        return;
      }
      if (unit.exact(this) || holds > 0) {
        unit.workers().report(Reports.restart(task, unit.replica(), epitaph.how(), dead.shown()));
        unit.failWith(
            new FlowException("a worker of task " + task + " has ended (" + epitaph.how()
                + "), and what depends on it goes back to the last commit"));
        return;
      }
      if (!unacknowledged.died(System.nanoTime() - startedNs, epitaph)) {
        unit.fail(
            Reports.failure(task, unit.replica(), "its worker process died " + Unacknowledged.DEATHS_ALLOWED
                + " times in a row (" + epitaph.how() + ") before it had finished anything; a crash in open() or of an"
                + " extension module does that"));
        return;
      }
      unit.workers().report(Reports.restart(task, unit.replica(), epitaph.how(), ""));
      Life.Action action = life.on(Life.Event.DIED);
      start();
      if (ordered > answered) { // a source: its successor marks in its place
        write(Wire.mark(0, ordered, quiet > 0, 0, unit.moves(ordered)));
      }
      for (ByteBuffer frame : unacknowledged.again()) {
        write(frame);
      }
      if (action != Life.Action.RESTART) {
        sendEnd(action == Life.Action.RESTART_LAST || unit.closing());
      }
    } catch (IOException | FlowException cannotStart) {
      unit.failWith(cannotStart);
    } finally {
      sending.unlock();
    }
  }

  /** The task is over: nobody waits here any longer. A worker that has not ended cleanly is not used again. */
  void close() {
    unacknowledged.release();
    WorkerProcess left = worker;
    if (left != null) {
      unit.workers().dismiss(left);
    }
  }
}
