package org.penstock.bridge;

import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/** The Python workers of one run in this executor: those at work, and those that wait for the next batch. */
final class Workers {
  private static final long UNCLAIMED_NS = 5_000_000_000L;
  private static final long LOOK_EVERY_NS = 500_000_000L;

  /** A worker that waits for the batch after `batch`. */
  private record Kept(WorkerProcess worker, long batch) {}

  private final RunSpec run;
  private final Agent agent;
  private final Map<String, Kept> idle = new ConcurrentHashMap<>();
  private final Set<WorkerProcess> alive = ConcurrentHashMap.newKeySet();
  private final Uploads uploads = new Uploads();
  private Zygote zygote;
  private boolean closed;
  private long newestBatch;
  private long newestSinceNs;
  private long lookedNs;

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
      zygote = new Zygote(run, uploads);
    }
    return zygote;
  }

  /**
   * The worker of this replica, kept from the batch before or forked now. One that was kept longer is not used again: in
   * between the replica was elsewhere, and what it knows is stale.
   */
  WorkerProcess acquire(String task, int replica, long batch) throws IOException {
    agent.lease().check();
    Kept kept = idle.remove(key(task, replica));
    if (kept != null && kept.batch() == batch - 1) {
      return kept.worker();
    }
    if (kept != null) {
      dismiss(kept.worker());
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

  boolean keeps(String task, int replica, long batch) {
    Kept kept = idle.get(key(task, replica));
    return kept != null && kept.batch() == batch - 1;
  }

  void keep(WorkerProcess worker, long batch) {
    Kept other = idle.put(key(worker.task(), worker.replica()), new Kept(worker, batch));
    if (other != null) {
      dismiss(other.worker());
    }
  }

  /** Called by the agent, often: ends workers whose replicas went to other executors, and finds deaths nobody tells. */
  void tend(long batch) {
    long nowNs = System.nanoTime();
    if (batch > newestBatch) {
      newestBatch = batch;
      newestSinceNs = nowNs;
    }
    idle.forEach((key, kept) -> {
      boolean late = kept.batch() < newestBatch - 1 || nowNs - newestSinceNs > UNCLAIMED_NS;
      if (kept.batch() < newestBatch && late && idle.remove(key, kept)) {
        dismiss(kept.worker());
      }
    });
    if (nowNs - lookedNs > LOOK_EVERY_NS) {
      lookedNs = nowNs;
      alive.stream().filter(WorkerProcess::diedUntold).forEach(WorkerProcess::closeChannels);
    }
  }

  /** Ends a worker now. Harmless for one that is dead already. */
  void dismiss(WorkerProcess worker) {
    alive.remove(worker);
    worker.kill();
  }

  Epitaph epitaph(WorkerProcess worker) {
    return worker.epitaph();
  }

  void tell(Orders orders) {
    alive.forEach(worker -> worker.tell(orders));
  }

  void report(String json) {
    agent.report(run.id(), json);
  }

  /** Reports when all files of state are where they belong. */
  CompletableFuture<Void> reportWhenUploaded(String json) {
    return uploads.then(() -> report(json));
  }

  String link() {
    return agent.link();
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
    uploads.close();
    alive.forEach(WorkerProcess::kill);
    alive.clear();
    idle.clear();
  }

  private static String key(String task, int replica) {
    return task + "#" + replica;
  }
}
