package org.apache.spark.penstock;

import org.apache.spark.SparkEnv;
import org.apache.spark.StreamingShuffleTaskLocation;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.streaming.StreamingShuffleHandle;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.TaskCompletionListener;
import org.penstock.bridge.Sender;
import scala.Product2;
import scala.collection.Iterator;

/** Writes the rows of one task to readers in this executor and in others. It ends when all of them have received all. */
final class LinkWriter<K, V> extends PartitionWriter<K, V> {
  private final Outlet[] outlets;
  private final TaskWatch watch;

  LinkWriter(Links links, StreamingShuffleHandle<K, V, ?> handle, long mapId, TaskContext context) {
    super(handle, mapId);
    this.watch = new TaskWatch(context);
    int shuffle = handle.shuffleId();
    Sender sender = new Sender(links.share(shuffle), HandoverShuffleManager.AHEAD_BYTES);
    this.outlets = links.register(shuffle, mapId, handle.dependency().partitioner().numPartitions(), sender);
    context.addTaskCompletionListener((TaskCompletionListener) done -> {
      links.unregister(shuffle, mapId);
      for (Outlet outlet : outlets) {
        outlet.close();
      }
      links.giveBackShare(shuffle);
    });
    Handovers.writes(context, outlets.length, partition -> outlets[partition].load());
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
        Outlet outlet = outlets[partition(record._1())];
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
}
