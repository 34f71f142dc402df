package org.penstock.bridge;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/** One Python worker: a replica of a task. It outlives batches; its data channel belongs to one stage at a time. */
final class WorkerProcess {
  private final Workers owner;
  private final String task;
  private final int replica;
  private final long token;
  private final long pid;
  private final SocketChannel data;
  private final SocketChannel control;
  private final Wire.Reader frames;

  WorkerProcess(
      Workers owner, String task, int replica, long token, long pid, SocketChannel data, SocketChannel control) {
    this.owner = owner;
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

  long token() {
    return token;
  }

  long pid() {
    return pid;
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

  void tell(Settings settings) {
    control(Wire.frame(Wire.SETTINGS, settings.json().getBytes(StandardCharsets.UTF_8)));
  }

  void tellJoined() {
    control(Wire.frame(Wire.JOINED, new byte[0]));
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

  private void readReports() {
    Wire.Reader reports = new Wire.Reader(control);
    try {
      for (Wire.Frame frame = reports.next(); frame != null; frame = reports.next()) {
        owner.report(StandardCharsets.UTF_8.decode(frame.body()).toString());
        control(Wire.frame(Wire.CLOCK, owner.exchange().getBytes(StandardCharsets.UTF_8)));
      }
    } catch (IOException ended) {
      // Its data channel tells the same, to somebody who can act on it.
    }
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
