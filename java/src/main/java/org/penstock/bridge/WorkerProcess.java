package org.penstock.bridge;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.function.LongFunction;

/** One Python worker: a replica of a task. It outlives batches; its data channel belongs to one host at a time. */
final class WorkerProcess {
  private final Workers owner;
  private final Zygote parent;
  private final String task;
  private final int replica;
  private final long token;
  private final long pid;
  private final SocketChannel data;
  private final SocketChannel control;
  private final Wire.Reader frames;
  private volatile LongFunction<String> queue = taken -> null;
  private boolean toldBehind; // by the agent's thread alone

  WorkerProcess(
      Workers owner, Zygote parent, String task, int replica, long token, long pid, SocketChannel data,
      SocketChannel control) {
    this.owner = owner;
    this.parent = parent;
    this.task = task;
    this.replica = replica;
    this.token = token;
    this.pid = pid;
    this.data = data;
    this.control = control;
    this.frames = new Wire.Reader(data);
    Zygote.daemon("penstock-reports-" + task + "-" + replica, this::readReports);
  }

  String task() {
    return task;
  }

  int replica() {
    return replica;
  }

  Wire.Frame nextFrame() throws IOException {
    return frames.next();
  }

  /** Whether the next frame is here already. */
  boolean hasFrame() {
    return frames.ready();
  }

  void send(ByteBuffer frame) throws IOException {
    while (frame.hasRemaining()) {
      data.write(frame);
    }
  }

  void tell(Orders orders) {
    control(Wire.frame(Wire.SWITCHES, orders.switches().getBytes(StandardCharsets.UTF_8)));
  }

  void tellJoined() {
    control(Wire.frame(Wire.JOINED, new byte[0]));
  }

  /** Whether somebody it sends to has much before it: what it ships at once may share envelopes then. */
  void tellBehind(boolean behind) {
    if (behind != toldBehind) {
      toldBehind = behind;
      control(Wire.frame(Wire.BEHIND, new byte[] {(byte) (behind ? 1 : 0)}));
    }
  }

  private void control(ByteBuffer frame) {
    synchronized (control) {
      try {
        while (frame.hasRemaining()) {
          control.write(frame);
        }
      } catch (IOException dying) {
        // Whoever reads its data channel sees the end and replaces it.
      }
    }
  }

  /** From now on its reports tell what waits before it: `of` gives that as JSON, behind the input it took last. */
  void tellQueue(LongFunction<String> of) {
    queue = of;
  }

  /** The last thing that is said of a worker is that it is gone. */
  private void readReports() {
    Wire.Reader reports = new Wire.Reader(control);
    try {
      for (Wire.Frame frame = reports.next(); frame != null; frame = reports.next()) {
        if (frame.kind() == Wire.REPORT) {
          long taken = frame.body().getLong();
          String report = StandardCharsets.UTF_8.decode(frame.body()).toString();
          owner.report(Reports.withQueue(report, queue.apply(taken)));
        }
        control(Wire.frame(Wire.LINK, owner.link().getBytes(StandardCharsets.UTF_8)));
      }
    } catch (IOException ended) {
      // Its data channel tells the same, to somebody who can act on it.
    }
    owner.report(Reports.gone(pid));
  }

  /** How it ended; waits a moment for the news. */
  Epitaph epitaph() {
    return parent.epitaph(task, token);
  }

  /** What it showed of itself to the end; nothing if it showed nothing. */
  String shown() {
    return parent.shown(task, replica);
  }

  /** Ends it now. Harmless for one that is dead already. */
  void kill() {
    if (parent.isAlive()) {
      parent.kill(token);
    } else {
      ProcessHandle.of(pid).ifPresent(ProcessHandle::destroyForcibly);
    }
    closeChannels();
  }

  /** Whether it is dead and nobody will tell: its parent, which tells of deaths, is gone, and so is it. */
  boolean diedUntold() {
    return !parent.isAlive() && !ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
  }

  void closeChannels() {
    try {
      data.close();
      control.close();
    } catch (IOException already) {
      // Nothing is left to close.
    }
  }
}
