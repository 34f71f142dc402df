package org.apache.spark.penstock;

import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.crypto.AuthClientBootstrap;
import org.apache.spark.network.crypto.AuthServerBootstrap;
import org.apache.spark.network.sasl.SecretKeyHolder;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.util.TransportConf;
import org.penstock.bridge.LargeRows;
import org.penstock.bridge.Sender;
import org.penstock.bridge.ShuffleMemory;

/**
 * The connections of one executor to the others: one for each, whoever needs it first makes it, and both sides use it.
 * Nothing is read from a connection before both sides have proved that they know the secret. It listens on one address, on any
 * free port.
 */
public final class Links implements AutoCloseable {
  private static final AttributeKey<Link> LINK = AttributeKey.valueOf("penstock.link");
  private static final long ANSWER_MS = 30_000;
  private static final long THEIRS_MS = 5_000; // longer than it takes to make one; then theirs is taken to be gone
  private static final byte WELCOME = 1;
  private static final byte HAVE_ONE = 0;

  private record Writer(int shuffle, long map) {}

  private record Shared(ShuffleMemory.Share memory, int tasks) {}

  private final String name;
  private final String host;
  private final LargeRows largeRows;
  private final TransportContext context;
  private final TransportClientFactory clients;
  private final TransportServer server;
  private final Map<String, Link> links = new ConcurrentHashMap<>();
  private final Map<String, CompletableFuture<Link>> calls = new ConcurrentHashMap<>();
  private final Map<Writer, Outlet[]> writers = new ConcurrentHashMap<>();
  private final Map<Integer, Shared> shares = new ConcurrentHashMap<>();

  /** Others reach it at `host`, and it listens at `listensAt`. */
  public Links(
      String name, String host, String listensAt, TransportConf conf, SecretKeyHolder secrets, long largeBytes) {
    this.name = name;
    this.host = host;
    this.largeRows = new LargeRows(largeBytes);
    this.context = new TransportContext(conf, new Receiver());
    this.clients = context.createClientFactory(List.of(
        (client, connection) -> Doorkeeper.atCalled(connection), new AuthClientBootstrap(conf, "penstock", secrets)));
    this.server = listening(listensAt, conf, secrets);
  }

  private TransportServer listening(String address, TransportConf conf, SecretKeyHolder secrets) {
    try {
      return context.createServer(
          address, 0, List.of(new AuthServerBootstrap(conf, secrets), new Doorkeeper()));
    } catch (Exception unable) { // Netty throws what it does not declare
      clients.close();
      context.close();
      throw new IllegalStateException(unable.getMessage(), unable);
    }
  }

  public String host() {
    return host;
  }

  public int port() {
    return server.getPort();
  }

  public LargeRows largeRows() {
    return largeRows;
  }

  /** How many other executors there is a connection to. */
  public int open() {
    return (int) links.values().stream().filter(Link::isOpen).count();
  }

  /** A writer of this executor can be asked for its rows. */
  public Outlet[] register(int shuffle, long map, int readers, Sender sender) {
    Outlet[] outlets = new Outlet[readers];
    for (int reader = 0; reader < readers; reader++) {
      outlets[reader] = new Outlet(sender);
    }
    writers.put(new Writer(shuffle, map), outlets);
    return outlets;
  }

  public void unregister(int shuffle, long map) {
    writers.remove(new Writer(shuffle, map));
  }

  /** What rows that wait for the readers of a shuffle may hold together in this executor. Each of its tasks gives it back. */
  ShuffleMemory.Share share(int shuffle) {
    Shared first = new Shared(Handovers.memory().share(), 1);
    return shares
        .merge(shuffle, first, (known, unused) -> new Shared(known.memory(), known.tasks() + 1))
        .memory();
  }

  void giveBackShare(int shuffle) {
    shares.computeIfPresent(shuffle, (id, known) -> {
      if (known.tasks() > 1) {
        return new Shared(known.memory(), known.tasks() - 1);
      }
      known.memory().close();
      return null;
    });
  }

  /** Writers of this executor whose tasks have not ended. */
  public int writing() {
    return writers.size();
  }

  /** Null if the task is over. */
  Outlet outlet(int shuffle, long map, int reader) {
    Outlet[] outlets = writers.get(new Writer(shuffle, map));
    if (outlets == null) {
      return null;
    }
    if (reader < 0 || reader >= outlets.length) {
      throw new Violation("reader " + reader + " of " + outlets.length);
    }
    return outlets[reader];
  }

  /** The connection to an executor, made if there is none. */
  public Link to(String peer, String itsHost, int itsPort) throws IOException, InterruptedException {
    for (boolean again = false; ; again = true) {
      CompletableFuture<Link> call = new CompletableFuture<>();
      CompletableFuture<Link> others;
      synchronized (calls) {
        Link present = links.get(peer);
        if (present != null && present.isOpen()) {
          return present;
        }
        others = calls.putIfAbsent(peer, call);
      }
      if (others == null) {
        return made(call, peer, itsHost, itsPort);
      }
      try {
        return waitFor(others, peer);
      } catch (IOException failed) { // which may be because the task that called was ended
        if (again) {
          throw failed;
        }
      }
    }
  }

  private Link made(CompletableFuture<Link> call, String peer, String itsHost, int itsPort)
      throws IOException, InterruptedException {
    try {
      Link made = call(peer, itsHost, itsPort, false);
      if (made == null) {
        made = theirs(peer);
      }
      if (made == null) {
        made = call(peer, itsHost, itsPort, true);
      }
      if (made == null) {
        throw new IOException("executor " + peer + " does not take the connection");
      }
      call.complete(made);
      return made;
    } catch (Throwable failed) { // whatever it is, or others would wait in vain
      calls.remove(peer, call); // before they hear of it, and call themselves
      call.completeExceptionally(failed);
      throw failed;
    } finally {
      calls.remove(peer, call);
    }
  }

  private static Link waitFor(CompletableFuture<Link> call, String peer) throws IOException, InterruptedException {
    try {
      return call.get(2 * ANSWER_MS, TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException failed) {
      throw new IOException("executor " + peer + " cannot be reached", failed);
    }
  }

  /** Null if the other side has, or makes, a connection already. */
  private Link call(String peer, String itsHost, int itsPort, boolean insists) throws IOException, InterruptedException {
    Channel connection = null;
    try {
      TransportClient client = clients.createUnmanagedClient(itsHost, itsPort);
      connection = client.getChannel();
      Channel theirs = connection;
      connection.eventLoop().submit(() -> Doorkeeper.letIn(theirs)).sync();
      Link link = new Link(this, peer, false, connection);
      connection.attr(LINK).set(link);
      ByteBuffer answer = client.sendRpcSync(new Frames.Greeting(name, insists).encoded(), ANSWER_MS);
      if (answer.remaining() != 1 || answer.get() != WELCOME) {
        connection.close();
        return null;
      }
      links.put(peer, link);
      return link;
    } catch (IOException | RuntimeException failed) {
      if (connection != null) {
        connection.close();
      }
      throw new IOException("executor " + peer + " at " + itsHost + ":" + itsPort + " cannot be reached", failed);
    }
  }

  private Link theirs(String peer) throws InterruptedException {
    long untilNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(THEIRS_MS);
    while (System.nanoTime() < untilNs) {
      Link link = links.get(peer);
      if (link != null && link.isOpen()) {
        return link;
      }
      Thread.sleep(1);
    }
    return null;
  }

  /** Somebody who knows the secret has called. Where two call each other at the same time, the call of the lower name counts. */
  private byte greeted(Frames.Greeting greeting, Channel connection) {
    String peer = greeting.name();
    synchronized (calls) {
      Link present = links.get(peer);
      boolean hasOne = present != null && present.isOpen() && !present.theyCalled();
      boolean makesOne = calls.containsKey(peer) && name.compareTo(peer) < 0;
      if (!greeting.insists() && (hasOne || makesOne)) {
        return HAVE_ONE;
      }
      Link link = new Link(this, peer, true, connection);
      connection.attr(LINK).set(link);
      links.put(peer, link);
      if (present != null) {
        present.close();
      }
      return WELCOME;
    }
  }

  private final class Receiver extends RpcHandler {
    @Override
    public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
      Channel connection = client.getChannel();
      try {
        if (!Doorkeeper.isAtTheDoor(connection)) {
          throw new Violation("a greeting that nobody waits for");
        }
        Frames.Greeting greeting = Frames.Greeting.decoded(message);
        Doorkeeper.letIn(connection);
        byte answer = greeted(greeting, connection);
        callback.onSuccess(ByteBuffer.wrap(new byte[] {answer}));
      } catch (RuntimeException wrong) {
        Doorkeeper.refuse(connection, wrong.getMessage());
      }
    }

    @Override
    public void receive(TransportClient client, ByteBuffer message) {
      Channel connection = client.getChannel();
      Link link = connection.attr(LINK).get();
      try {
        if (link == null) {
          throw new Violation("a message without a greeting");
        }
        link.receive(message);
      } catch (RuntimeException wrong) {
        Doorkeeper.refuse(connection, wrong.getMessage());
      }
    }

    @Override
    public void channelInactive(TransportClient client) {
      Link link = client.getChannel().attr(LINK).get();
      if (link != null) {
        links.remove(link.peer(), link);
        link.lost();
      }
    }

    @Override
    public void exceptionCaught(Throwable why, TransportClient client) {
      if (!(why instanceof IOException)) { // which is how connections end
        Doorkeeper.refuse(client.getChannel(), why.getMessage());
      }
    }

    @Override
    public StreamManager getStreamManager() {
      return new StreamManager() {
        @Override
        public ManagedBuffer getChunk(long stream, int index) {
          throw new UnsupportedOperationException();
        }
      };
    }
  }

  @Override
  public void close() {
    server.close();
    clients.close();
    links.values().forEach(Link::close);
    context.close();
  }
}
