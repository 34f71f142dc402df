package org.penstock.bridge;

import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.spark.penstock.SparkInternals;

/**
 * The warm parent of a run's workers in this executor: a Python process that has imported everything and forks on
 * request. It connects each child twice (data, control) over a socket in a private directory, with a secret token, and it tells
 * when a child has died: then both channels end here, also if a process that the child had forked still holds them.
 * When this JVM dies, the parent's standard input ends; it then kills its children and removes the directory.
 */
final class Zygote {
  private static final long READY_S = 120;
  private static final long CONNECT_S = 30;
  private static final int HELLO = 9; // u8 channel, i64 token

  private final SecureRandom random = new SecureRandom();
  private final Path directory;
  private final ServerSocketChannel server;
  private final StoreServer store; // null where workers use the files of the checkpoint themselves
  private final Process process;
  private final DataOutputStream commands;
  private final CompletableFuture<String> ready = new CompletableFuture<>();
  private final Map<Long, Birth> births = new ConcurrentHashMap<>();
  private final Map<Long, CompletableFuture<Integer>> deaths = new ConcurrentHashMap<>();
  private final Map<Long, String> overs = new ConcurrentHashMap<>(); // limits that workers exceeded, told before they end

  private static final class Birth {
    final CompletableFuture<Long> pid = new CompletableFuture<>();
    final CompletableFuture<SocketChannel> data = new CompletableFuture<>();
    final CompletableFuture<SocketChannel> control = new CompletableFuture<>();

    void fail(IOException why) {
      pid.completeExceptionally(why);
      data.completeExceptionally(why);
      control.completeExceptionally(why);
    }
  }

  Zygote(RunSpec run, Uploads uploads) throws IOException {
    String address = run.checkpoint();
    CheckpointStore files = address == null ? null : new CheckpointStore(address, SparkInternals.hadoopConf());
    directory =
        Files.createTempDirectory(
            "penstock-", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Path socket = directory.resolve("workers.sock");
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(socket), 1024);
    store = files == null ? null : new StoreServer(files, uploads, directory);
    ProcessBuilder builder = new ProcessBuilder(run.python(), "-m", "penstock.worker.zygote", socket.toString());
    builder.environment().put("PYTHONPATH", run.pythonPath());
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    process = builder.start();
    commands = new DataOutputStream(process.getOutputStream());
    daemon("penstock-zygote-events", this::readEvents);
    daemon("penstock-zygote-accept", this::accept);
    try {
      commands.writeInt(run.plan().length);
      commands.write(run.plan());
      commands.flush();
    } catch (IOException died) {
      ready.complete("the Python parent process ended while it was starting");
    }
    awaitReady(run.flow());
  }

  /** Whoever stops the flow meanwhile, or waits in vain, leaves nothing behind. */
  private void awaitReady(String flow) throws IOException {
    String problem;
    try {
      problem = await(ready, READY_S, "the Python parent process did not start");
    } catch (IOException | FlowBroken stopped) {
      close();
      throw stopped;
    }
    if (!problem.isEmpty()) {
      close();
      throw new IOException("flow " + flow + ": " + problem);
    }
  }

  /** Forks a worker and waits until both of its channels are open. */
  WorkerProcess fork(Workers owner, String task, int replica) throws IOException {
    long token = random.nextLong();
    Birth birth = new Birth();
    births.put(token, birth);
    deaths.put(token, new CompletableFuture<>());
    try {
      command("fork " + token);
      long pid = await(birth.pid, CONNECT_S, "the Python parent process did not fork");
      SocketChannel data = await(birth.data, CONNECT_S, "a new worker of " + task + " did not connect");
      SocketChannel control = await(birth.control, CONNECT_S, "a new worker of " + task + " did not connect");
      return new WorkerProcess(owner, this, task, replica, token, pid, data, control);
    } catch (IOException failed) {
      kill(token);
      throw failed;
    } finally {
      births.remove(token);
    }
  }

  boolean isAlive() {
    return process.isAlive();
  }

  boolean endsWithin(long seconds) throws IOException {
    try {
      return process.waitFor(seconds, TimeUnit.SECONDS);
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while starting a worker");
    }
  }

  void kill(long token) {
    deaths.remove(token);
    overs.remove(token);
    try {
      command("kill " + token);
    } catch (IOException gone) {
      // A parent that is gone has taken its children with it.
    }
  }

  /** How a worker of a task ended; waits a moment for the news. */
  Epitaph epitaph(String task, long token) {
    String how = end(token);
    String over = overs.remove(token);
    return over == null ? new Epitaph(task, how) : Epitaph.parse(over);
  }

  /** The parent of the workers does the same, if it was not killed. */
  private static void removeAll(Path directory) throws IOException {
    if (!Files.exists(directory)) {
      return;
    }
    try (Stream<Path> found = Files.walk(directory)) {
      for (Path path : found.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(path);
      }
    }
  }

  /** What a worker wrote on its page, in hexadecimal digits; see penstock/epochs/killers.py. */
  String shown(String task, int replica) {
    Path page = directory.resolve(String.format("at-%05d-%s", replica, task));
    try {
      return Files.exists(page) ? HexFormat.of().formatHex(Files.readAllBytes(page)) : "";
    } catch (IOException gone) {
      return "";
    }
  }

  private String end(long token) {
    CompletableFuture<Integer> death = deaths.get(token);
    if (!isAlive()) {
      return "its parent process is gone, too";
    }
    try {
      int status = death == null ? 0 : death.get(2, TimeUnit.SECONDS);
      return status < 0 ? "killed by signal " + -status : "exit status " + status;
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      return "unknown end";
    } catch (ExecutionException | TimeoutException unknown) {
      return "unknown end";
    } finally {
      deaths.remove(token);
    }
  }

  private synchronized void command(String line) throws IOException {
    commands.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
    commands.flush();
  }

  private void readEvents() {
    try (BufferedReader events =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = events.readLine(); line != null; line = events.readLine()) {
        String[] words = line.split(" ", 3);
        switch (words[0]) {
          case "ready" -> ready.complete("");
          case "error" -> ready.completeExceptionally(new FlowBroken(line.substring(6).replace("\\n", "\n")));
          case "forked" -> {
            Birth birth = births.get(Long.parseLong(words[1]));
            if (birth != null) {
              birth.pid.complete(Long.parseLong(words[2]));
            }
          }
          case "over" -> {
            if (deaths.containsKey(Long.parseLong(words[1]))) {
              overs.put(Long.parseLong(words[1]), words[2]);
            }
          }
          case "exited" -> {
            long token = Long.parseLong(words[1]);
            Birth birth = births.get(token);
            if (birth != null) {
              birth.fail(new IOException("it died at once, with status " + words[2]));
            }
            CompletableFuture<Integer> death = deaths.get(token);
            if (death != null) {
              death.complete(Integer.parseInt(words[2]));
            }
          }
          default -> throw new IllegalStateException("the Python parent process said: " + line);
        }
      }
    } catch (IOException closed) {
      // The end of the process is the end of its events.
    }
    ready.complete("the Python parent process ended before it was ready; its error output says why");
    IOException gone = new IOException("the Python parent process ended");
    births.values().forEach(birth -> birth.fail(gone));
  }

  private void accept() {
    while (true) {
      try {
        SocketChannel channel = server.accept();
        ByteBuffer hello = ByteBuffer.allocate(HELLO).order(ByteOrder.LITTLE_ENDIAN);
        while (hello.hasRemaining() && channel.read(hello) >= 0) {}
        Birth birth = hello.hasRemaining() ? null : births.get(hello.getLong(1));
        if (birth == null) {
          channel.close();
        } else {
          (hello.get(0) == 0 ? birth.data : birth.control).complete(channel);
        }
      } catch (IOException closed) {
        return;
      }
    }
  }

  private static <T> T await(CompletableFuture<T> future, long seconds, String problem) throws IOException {
    try {
      return future.get(seconds, TimeUnit.SECONDS);
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while starting a worker");
    } catch (TimeoutException late) {
      throw new IOException(problem + " within " + seconds + " s");
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof FlowBroken broken) {
        throw broken;
      }
      throw new IOException(problem + ": " + failed.getCause().getMessage());
    }
  }

  static Thread daemon(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  void close() {
    try {
      commands.close();
    } catch (IOException gone) {
      // A parent that was killed has no standard input any more; the rest is cleared away all the same.
    }
    try {
      if (!process.waitFor(5, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException stop) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
    try {
      if (store != null) {
        store.close();
      }
      server.close();
      removeAll(directory);
    } catch (IOException | UncheckedIOException leftover) {
      directory.toFile().deleteOnExit();
    }
  }
}
