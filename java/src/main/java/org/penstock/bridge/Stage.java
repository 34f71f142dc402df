package org.penstock.bridge;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One task of a unit in one partition: keeps its worker running, feeds it, and reads what it says.
 * The lock `sending` orders the frames into the worker and guards which worker that is. It may be held while a write
 * waits for a busy worker, so nothing that reads from a worker ever takes it, save to replace a worker that is dead.
 */
final class Stage {
  private static final long RETIRE_AFTER_NS = 1_000_000_000L;

  private final Pump pump;
  private final int index;
  private final String task;
  private final int[] feeds;
  private final Ledger ledger = new Ledger();
  private final ReentrantLock sending = new ReentrantLock();
  private final Condition retired = sending.newCondition();
  private volatile WorkerProcess worker;
  private int openInputs = 1; // the shuffle; each stage of the unit that feeds this one adds itself
  private boolean endSent;
  private boolean retiring;
  private Runnable afterRetiring = () -> {};
  private volatile boolean ended;
  private volatile String mark; // a source's latest {"ordinal", "offset"} up to which everything was shipped
  private volatile long lastInputNs = System.nanoTime();

  Stage(Pump pump, int index, String task, int[] feeds) {
    this.pump = pump;
    this.index = index;
    this.task = task;
    this.feeds = feeds;
  }

  String task() {
    return task;
  }

  int[] feeds() {
    return feeds;
  }

  void addInput() {
    openInputs++;
  }

  boolean ended() {
    return ended;
  }

  /** Starts the worker if there is none: the replica was activated, or an envelope has come. */
  void activate() throws IOException {
    if (worker != null) {
      return; // without the lock: it may be held for long while that worker is busy
    }
    sending.lock();
    try {
      if (worker == null && !ended && !endSent && !pump.closed()) {
        open();
      }
    } finally {
      sending.unlock();
    }
  }

  private void open() throws IOException {
    WorkerProcess fresh = pump.workers().acquire(task, pump.replica());
    worker = fresh;
    retiring = false;
    pump.read(task, () -> more(fresh));
    write(Wire.frame(Wire.START, pump.startOrder(index, mark).getBytes(StandardCharsets.UTF_8)));
  }

  void deliver(List<byte[]> envelopes) throws IOException, InterruptedException {
    ledger.awaitRoom();
    sending.lock();
    try {
      while (retiring && !pump.closed()) {
        retired.await();
      }
      lastInputNs = System.nanoTime();
      activate();
      ByteBuffer[] frames = new ByteBuffer[envelopes.size()];
      int size = 0;
      for (int i = 0; i < frames.length; i++) {
        frames[i] = ledger.give(envelopes.get(i));
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
    try {
      worker.send(frame);
    } catch (IOException dying) {
      // See above.
    }
  }

  /** One of the inputs has ended; after the last one the worker is asked to finish the batch. */
  void inputEnded() {
    sending.lock();
    try {
      if (--openInputs > 0 || ended) {
        return;
      }
      if (worker == null || retiring) {
        endSent = true;
        if (worker == null) {
          finish();
        }
        return;
      }
      sendEnd(pump.closing());
    } finally {
      sending.unlock();
    }
  }

  private void sendEnd(boolean last) {
    endSent = true;
    write(Wire.frame(Wire.END, new byte[] {(byte) (last ? 1 : 0)}));
  }

  /** A deactivated replica finishes what it has, says good-bye, and its process ends. */
  void retireIfIdle() {
    if (System.nanoTime() - lastInputNs < RETIRE_AFTER_NS || !sending.tryLock()) {
      return;
    }
    try {
      if (worker != null && !retiring && !endSent && ledger.isEmpty()) {
        retiring = true;
        write(Wire.frame(Wire.END, new byte[] {1}));
      }
    } finally {
      sending.unlock();
    }
  }

  /** The worker finishes what it has and ends; `then` runs when it has. */
  void retire(Runnable then) {
    sending.lock();
    try {
      if (worker != null && !ended) {
        afterRetiring = then;
        if (!retiring && !endSent) {
          retiring = true;
          write(Wire.frame(Wire.END, new byte[] {1}));
        }
        return;
      }
    } finally {
      sending.unlock();
    }
    then.run();
  }

  private Runnable takeAfterRetiring() {
    Runnable then = afterRetiring;
    afterRetiring = () -> {};
    return then;
  }

  /** Deals with the next frames of a worker, at least one; false when it will send nothing more. */
  private boolean more(WorkerProcess from) {
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
      pump.failWith(broken);
      return false;
    }
    if (!Thread.currentThread().isInterrupted()) {
      replace(from);
    }
    return false;
  }

  /** False after the last frame. */
  private boolean handle(WorkerProcess from, Wire.Frame frame) throws IOException, InterruptedException {
    ByteBuffer body = frame.body();
    switch (frame.kind()) {
      case Wire.OUT -> {
        ledger.acknowledge(body.getLong());
        int target = body.getInt();
        int stage = body.get() & 0xFF;
        byte[] envelope = new byte[body.remaining()];
        body.get(envelope);
        pump.route(stage, target, envelope);
      }
      case Wire.ACK -> acknowledge(body);
      case Wire.JOIN -> pump.join(from, Reports.parse(text(body)).iterator());
      case Wire.AT -> ledger.at(body.getLong(), body.getInt());
      case Wire.FAILED -> {
        pump.fail(text(body));
        return false;
      }
      case Wire.ENDED -> {
        workerEnded(from, text(body));
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
    ledger.acknowledge(body.getLong());
    if (body.hasRemaining()) {
      mark = text(body);
    }
  }

  private void workerEnded(WorkerProcess from, String news) {
    boolean over;
    boolean keep;
    Runnable then;
    sending.lock();
    try {
      over = endSent || !retiring;
      endSent = over; // a source ends by itself, and nobody may start it again in this batch
      keep = !retiring && !pump.closing();
      worker = null;
      retiring = false;
      then = takeAfterRetiring();
      retired.signalAll();
    } finally {
      sending.unlock();
    }
    pump.workers().report(news);
    if (keep) {
      pump.workers().keep(from);
    } else {
      pump.workers().dismiss(from);
    }
    if (over) {
      pump.sourceEnded(index, news);
      finish();
    }
    then.run();
  }

  private void finish() {
    ended = true;
    pump.stageEnded(this);
  }

  private void replace(WorkerProcess dead) {
    if (pump.closed()) {
      return;
    }
    String how = pump.workers().epitaph(dead);
    sending.lock();
    try {
      if (worker != dead || pump.closed()) {
        return;
      }
      pump.workers().dismiss(dead);
      worker = null;
      if (retiring) {
        retiring = false;
        retired.signalAll();
        if (endSent) {
          finish();
        }
        takeAfterRetiring().run();
        return;
      }
      if (!ledger.died()) {
        pump.fail(
            Reports.failure(task, pump.replica(), "its worker process died " + Ledger.DEATHS_ALLOWED + " times in a row ("
                + how + ") before it had finished anything; a crash in open() or of an extension module does that"));
        return;
      }
      pump.workers().report(Reports.restart(task, pump.replica(), how));
      boolean resumeEnd = endSent;
      open();
      for (ByteBuffer frame : ledger.again()) {
        write(frame);
      }
      if (resumeEnd) {
        sendEnd(pump.closing());
      }
    } catch (IOException cannotStart) {
      pump.failWith(cannotStart);
    } finally {
      sending.unlock();
    }
  }

  /** The task is over: nobody waits here any longer. A worker that has not ended cleanly is not used again. */
  void close() {
    ledger.release();
    WorkerProcess left = worker;
    if (left != null) {
      pump.workers().dismiss(left);
    }
  }
}
