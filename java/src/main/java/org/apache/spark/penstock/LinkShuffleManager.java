package org.apache.spark.penstock;

import java.io.IOException;
import java.util.function.Consumer;
import org.apache.spark.SSLOptions;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.sasl.SecretKeyHolder;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.streaming.StreamingShuffleHandle;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.penstock.bridge.Inbox;
import scala.Option;

/**
 * The streaming shuffle between executors: inside one of them rows are handed over, and there is one connection from each to
 * each. The driver decides for each shuffle: where it cannot be done it is Spark's own, and that is told.
 */
public final class LinkShuffleManager extends HandoverShuffleManager {
  /** Bytes that the large rows on their way to the tasks of one executor may take together. */
  static final String LARGE_ROWS = "spark.penstock.shuffle.largeRows";

  /** Where every executor listens: its own address unless this says another, as 0.0.0.0 behind a translation of addresses. */
  static final String ADDRESS = "spark.penstock.shuffle.address";

  private static final String LARGE_ROWS_DEFAULT = "128m";
  private static final int THREADS = 2;
  private static final String LOOPBACK = "127.0.0.1";

  private static volatile Consumer<String> whenUnable = why -> {};

  private Links links;

  /** A shuffle that goes over our connections. */
  private static final class Handle<K, V, C> extends StreamingShuffleHandle<K, V, C> {
    private static final long serialVersionUID = 1L;

    Handle(int shuffle, ShuffleDependency<K, V, C> dependency) {
      super(shuffle, dependency);
    }
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(int shuffle, ShuffleDependency<K, V, C> dependency) {
    // Whatever else goes over a shuffle of this kind is Spark's business.
    boolean isOfSql = dependency.serializer() instanceof UnsafeRowSerializer;
    if (isOneProcess(SparkEnv.get().conf()) || !isOfSql || problem() != null) {
      return super.registerShuffle(shuffle, dependency);
    }
    return new Handle<>(shuffle, dependency);
  }

  /** In the driver: why shuffles are Spark's own although ours is chosen; null if they are not. */
  public static String fallback() {
    SparkEnv env = SparkEnv.get();
    return env.pipelinedShuffleManager() instanceof LinkShuffleManager ours ? ours.problem() : null;
  }

  private static boolean isOneProcess(SparkConf conf) {
    String master = conf.get("spark.master", "local");
    return master.startsWith("local") && !master.startsWith("local-cluster");
  }

  @Override
  String found() {
    return isOneProcess(SparkEnv.get().conf()) ? super.found() : trial();
  }

  /** In the driver: an executor cannot take part, so the next shuffles are Spark's own. Its task fails with the same words. */
  public static void giveUp(String why) {
    if (SparkEnv.get().pipelinedShuffleManager() instanceof LinkShuffleManager ours && ours.problem() == null) {
      ours.setProblem(why);
    }
  }

  /** In an executor: whom to tell why it cannot take part. */
  public static void setWhenUnable(Consumer<String> listener) {
    whenUnable = listener;
  }

  /** Two ends inside the driver call each other, as executors will: what they need of Spark is there and works. */
  public static String trial() {
    SecretKeyHolder secrets = ShuffleSecret.holder(SparkEnv.get().securityManager());
    if (secrets == null) {
      return "the plugin of Penstock made no secret";
    }
    TransportConf conf = transportConf();
    try (Links one = new Links("trial-1", LOOPBACK, LOOPBACK, conf, secrets, 0);
        Links other = new Links("trial-2", LOOPBACK, LOOPBACK, conf, secrets, 0)) {
      return one.to("trial-2", LOOPBACK, other.port()).isOpen() ? null : "a trial connection was closed";
    } catch (InterruptedException cancelled) {
      throw TaskWatch.cancelled(cancelled);
    } catch (IOException | RuntimeException | LinkageError wrong) {
      return wrong.toString();
    }
  }

  /** Spark's settings for connections: encryption, TLS and timeouts are as they are for Spark's own. */
  public static TransportConf transportConf() {
    SparkEnv env = SparkEnv.get();
    return transportConf(env.conf(), Option.apply(env.securityManager().getRpcSSLOptions()));
  }

  public static TransportConf transportConf(SparkConf sparks, Option<SSLOptions> tls) {
    SparkConf conf = sparks.clone()
        // Connections outlive batches: without it one to a host that vanished would stay for ever.
        .setIfMissing("spark.links.io.enableTcpKeepAlive", "true")
        // Whoever is in between can flip bits of what is encrypted as Spark does it by itself, by AES/CTR (SPARK-47172).
        .setIfMissing("spark.network.crypto.cipher", "AES/GCM/NoPadding")
        // Or refuse the proof in the name of the other side, so that they agree on one without encryption.
        .set("spark.network.crypto.saslFallback", "false");
    // As Spark encrypts by SASL it loses what does not fit into a socket at once, and drops silently what was changed.
    if (conf.getBoolean("spark.authenticate.enableSaslEncryption", false)) {
      conf.set("spark.network.crypto.enabled", "true");
    }
    return SparkTransportConf.fromSparkConf(conf, "links", THREADS, Option.empty(), tls);
  }

  /** The connections of this executor. */
  private synchronized Links links() {
    if (links == null) {
      SparkEnv env = SparkEnv.get();
      SecretKeyHolder secrets = ShuffleSecret.holder(env.securityManager());
      if (secrets == null) {
        throw new IllegalStateException("the Penstock plugin is not loaded in this executor");
      }
      String host = env.blockManager().blockManagerId().host();
      String address = env.conf().get(ADDRESS, host);
      long largeBytes = env.conf().getSizeAsBytes(LARGE_ROWS, LARGE_ROWS_DEFAULT);
      try {
        links = new Links(env.executorId(), host, address, transportConf(), secrets, largeBytes);
      } catch (RuntimeException unable) {
        String why = "executor " + env.executorId() + " cannot listen on " + address + " (" + unable.getMessage()
            + "); " + ADDRESS + " is where executors listen";
        whenUnable.accept(why);
        throw new IllegalStateException(why, unable);
      }
      Handovers.setLargeRows(largeBytes);
    }
    return links;
  }

  private final class Linked implements Way {
    @Override
    public <K, V> ShuffleWriter<K, V> writer(
        StreamingShuffleHandle<K, V, ?> shuffle, long mapId, TaskContext context) {
      return new LinkWriter<>(links(), shuffle, mapId, context);
    }

    @Override
    public <K, C> ShuffleReader<K, C> reader(StreamingShuffleHandle<?, ?, ?> shuffle, TaskContext context) {
      int id = shuffle.shuffleId();
      int writers = writers(id);
      Inbox<Object> inbox = LinkReader.inbox(writers);
      Handovers.reads(context, inbox);
      Links own = links();
      return () -> new LinkReader<>(own, id, writers, inbox, context);
    }
  }

  @Override
  Way way(ShuffleHandle handle) {
    return handle instanceof Handle ? new Linked() : super.way(handle);
  }

  @Override
  public void stop() {
    synchronized (this) {
      if (links != null) {
        links.close();
        links = null;
      }
    }
    super.stop();
  }
}
