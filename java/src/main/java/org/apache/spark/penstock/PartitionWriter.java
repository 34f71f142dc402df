package org.apache.spark.penstock;

import org.apache.spark.Partitioner;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.MapStatus$;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.streaming.StreamingShuffleHandle;
import scala.Option;

/** Writes the rows of one task, each to the partition that its key says. */
abstract class PartitionWriter<K, V> extends ShuffleWriter<K, V> {
  private final Partitioner partitioner;
  private final long mapId;

  PartitionWriter(StreamingShuffleHandle<K, V, ?> shuffle, long mapId) {
    this.partitioner = shuffle.dependency().partitioner();
    this.mapId = mapId;
  }

  final int partition(Object key) {
    return partitioner.getPartition(key);
  }

  /** Nobody ever asks Spark where the output of this task is. */
  @Override
  public final Option<MapStatus> stop(boolean success) {
    return Option.apply(status(getPartitionLengths(), mapId));
  }

  static MapStatus status(long[] lengths, long mapId) {
    return MapStatus$.MODULE$.apply(SparkEnv.get().blockManager().shuffleServerId(), lengths, mapId, 0L);
  }

  @Override
  public final long[] getPartitionLengths() {
    return new long[partitioner.numPartitions()];
  }
}
