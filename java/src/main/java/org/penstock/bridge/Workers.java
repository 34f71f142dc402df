package org.penstock.bridge;

import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The Python workers of one run in this executor: those at work, and those that wait for the next batch. */
final class Workers {
  private final RunSpec run;
  private final Agent agent;
  private final Map<String, WorkerProcess> idle = new ConcurrentHashMap<>();
  private final Set<WorkerProcess> alive = ConcurrentHashMap.newKeySet();
  private Zygote zygote;
  private boolean closed;

  Workers(RunSpec run, Agent agent) {
    this.run = run;
    this.agent = agent;
  }

  private synchronized Zygote zygote() throws IOException {
    if (closed) {
      throw new IOException("the run is over");
    }
    if (zygote != null && !zygote.isAlive()) {
      zygote.close();
      zygote = null;
    }
    if (zygote == null) {
      zygote = new Zygote(run);
    }
    return zygote;
  }

  /** The worker of this replica, kept from the batch before or forked now. */
  WorkerProcess acquire(String task, int replica) throws IOException {
    WorkerProcess kept = idle.remove(key(task, replica));
    if (kept != null) {
      return kept;
    }
    WorkerProcess fresh = fork(task, replica);
    alive.add(fresh);
    return fresh;
  }

  /** A parent that was killed is replaced once; its children live on as long as their channels do. */
  private WorkerProcess fork(String task, int replica) throws IOException {
    Zygote parent = zygote();
    try {
      return parent.fork(this, task, replica);
    } catch (IOException failed) {
      if (!parent.endsWithin(1)) {
        throw failed;
      }
      return zygote().fork(this, task, replica);
    }
  }

  boolean keeps(String task, int replica) {
    return idle.containsKey(key(task, replica));
  }

  void keep(WorkerProcess worker) {
    WorkerProcess other = idle.put(key(worker.task(), worker.replica()), worker);
    if (other != null) {
      dismiss(other);
    }
  }

  /** Ends a worker now. Harmless for one that is dead already. */
  void dismiss(WorkerProcess worker) {
    alive.remove(worker);
    Zygote parent;
    synchronized (this) {
      parent = zygote;
    }
    if (parent != null) {
      parent.kill(worker.token());
    }
    worker.closeChannels();
    report(Reports.gone(worker.pid()));
  }

  String epitaph(WorkerProcess worker) {
    Zygote parent;
    synchronized (this) {
      parent = zygote;
    }
    return parent == null ? "the run is over" : parent.epitaph(worker.token());
  }

  void tell(Settings settings) {
    alive.forEach(worker -> worker.tell(settings));
  }

  void report(String json) {
    agent.report(run.id(), json);
  }

  String exchange() {
    return agent.exchange();
  }

  void close() {
    Zygote parent;
    synchronized (this) {
      closed = true;
      parent = zygote;
      zygote = null;
    }
    if (parent != null) {
      parent.close();
    }
    alive.forEach(WorkerProcess::closeChannels);
    alive.clear();
    idle.clear();
  }

  private static String key(String task, int replica) {
    return task + "#" + replica;
  }
}
