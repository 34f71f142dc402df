package org.apache.spark.penstock;

import org.apache.spark.Partitioner;
import org.apache.spark.SparkEnv;
import org.apache.spark.StreamingShuffleTaskLocation;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.MapStatus$;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.streaming.StreamingShuffleHandle;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/** Writes the rows of one task to readers in this executor and in others. It ends when all of them have received all. */
final class LinkWriter<K, V> extends ShuffleWriter<K, V> {
  private final Outlet[] outlets;
  private final Partitioner partitioner;
  private final long mapId;
  private final TaskWatch watch;

  LinkWriter(Links links, StreamingShuffleHandle<K, V, ?> handle, long mapId, TaskContext context) {
    this.partitioner = handle.dependency().partitioner();
    this.mapId = mapId;
    this.watch = new TaskWatch(context);
    int shuffle = handle.shuffleId();
    this.outlets = links.register(shuffle, mapId, partitioner.numPartitions());
    context.addTaskCompletionListener((TaskCompletionListener) done -> {
      links.unregister(shuffle, mapId);
      for (Outlet outlet : outlets) {
        outlet.close();
      }
    });
    SparkEnv env = SparkEnv.get();
    StreamingShuffleTaskLocation here =
        new StreamingShuffleTaskLocation(env.executorId(), links.host(), links.port());
    env.streamingShuffleOutputTracker().get().registerShuffleWriterTask(shuffle, mapId, here);
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) {
    try {
      while (records.hasNext()) {
        Product2<K, V> record = records.next();
        Outlet outlet = outlets[partitioner.getPartition(record._1())];
        outlet.sink(watch).put(record._1(), (UnsafeRow) record._2(), watch);
      }
      for (Outlet outlet : outlets) {
        outlet.sink(watch).end();
      }
      for (Outlet outlet : outlets) {
        outlet.sink(watch).awaitEnded(watch);
      }
    } catch (InterruptedException cancelled) {
      throw TaskWatch.cancelled(cancelled);
    }
  }

  /** Nobody ever asks Spark where the output of this task is. */
  @Override
  public Option<MapStatus> stop(boolean success) {
    return Option.apply(
        MapStatus$.MODULE$.apply(SparkEnv.get().blockManager().shuffleServerId(), getPartitionLengths(), mapId, 0L));
  }

  @Override
  public long[] getPartitionLengths() {
    return new long[outlets.length];
  }
}
