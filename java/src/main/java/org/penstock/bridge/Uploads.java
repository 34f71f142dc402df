package org.penstock.bridge;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Files of state on their way to the checkpoint, while the workers that wrote them go on. Nobody hears that a task has written down
 * an epoch before they are there. All of an executor are waited for, as an epoch needs those of all replicas anyway.
 */
final class Uploads {
  private static final long ROOM = 32 << 20; // bytes of this JVM's memory; beyond that a worker waits for its file
  private static final int THREADS = 4;

  /** What brings one file there. */
  interface Upload {
    void run() throws IOException;
  }

  private final ThreadPoolExecutor threads =
      new ThreadPoolExecutor(THREADS, THREADS, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), body -> {
        Thread thread = new Thread(body, "penstock-upload");
        thread.setDaemon(true);
        return thread;
      });
  private final List<CompletableFuture<Void>> underway = new ArrayList<>();
  private CompletableFuture<Void> told = CompletableFuture.completedFuture(null);
  private long held;

  Uploads() {
    threads.allowCoreThreadTimeOut(true);
  }

  /** Whether so many bytes may wait here; then they are given to `begin`. */
  synchronized boolean admits(long length) {
    if (held + length > ROOM) {
      return false;
    }
    held += length;
    return true;
  }

  synchronized void begin(long length, Upload upload) {
    CompletableFuture<Void> done =
        CompletableFuture.runAsync(() -> {
          try {
            upload.run();
          } catch (IOException problem) {
            throw new CompletionException(problem);
          } finally {
            release(length);
          }
        }, threads);
    underway.removeIf(other -> other.isDone() && !other.isCompletedExceptionally());
    underway.add(done);
  }

  synchronized void release(long length) {
    held -= length;
  }

  /** Tells something when all is there that is under way now, and after what was to be told before; never if one has failed. */
  synchronized CompletableFuture<Void> then(Runnable tell) {
    List<CompletableFuture<Void>> first = new ArrayList<>(underway);
    first.add(told);
    told = CompletableFuture.allOf(first.toArray(CompletableFuture[]::new)).thenRun(tell);
    return told;
  }

  void close() {
    threads.shutdownNow();
  }
}
