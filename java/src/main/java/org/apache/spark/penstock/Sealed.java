package org.apache.spark.penstock;

import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.streaming.StreamingShuffleHandle;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Spark's own streaming shuffle between executors, whose servers ask nobody who they are: every row, which is one of Spark SQL,
 * carries a seal, and nothing is read of one that has none.
 */
final class Sealed {
  private Sealed() {}

  static <K, V> ShuffleWriter<K, V> writer(StreamingShuffleHandle<K, V, ?> shuffle, ShuffleWriter<K, V> sparks) {
    return new Writer<>(shuffle, RowSeal.of(shuffle.shuffleId()), sparks);
  }

  static <K, C> ShuffleReader<K, C> reader(
      StreamingShuffleHandle<?, ?, ?> shuffle, int partition, ShuffleReader<K, C> sparks) {
    RowSeal seal = RowSeal.of(shuffle.shuffleId());
    return () -> new Opened<>(seal, partition, sparks.read());
  }

  private static final class Writer<K, V> extends ShuffleWriter<K, V> {
    private final StreamingShuffleHandle<K, V, ?> shuffle;
    private final RowSeal seal;
    private final ShuffleWriter<K, V> sparks;

    Writer(StreamingShuffleHandle<K, V, ?> shuffle, RowSeal seal, ShuffleWriter<K, V> sparks) {
      this.shuffle = shuffle;
      this.seal = seal;
      this.sparks = sparks;
    }

    @Override
    public void write(Iterator<Product2<K, V>> records) throws java.io.IOException {
      sparks.write(new Rows<K, V>(records) {
        @Override
        @SuppressWarnings("unchecked")
        Product2<K, V> changed(Product2<K, V> record) {
          int partition = shuffle.dependency().partitioner().getPartition(record._1());
          return new Tuple2<>(record._1(), (V) seal.sealed(partition, (UnsafeRow) record._2()));
        }
      });
    }

    @Override
    public Option<MapStatus> stop(boolean success) {
      return sparks.stop(success);
    }

    @Override
    public long[] getPartitionLengths() {
      return sparks.getPartitionLengths();
    }
  }

  private static final class Opened<K, C> extends Rows<K, C> {
    private final RowSeal seal;
    private final int partition;

    Opened(RowSeal seal, int partition, Iterator<Product2<K, C>> sealed) {
      super(sealed);
      this.seal = seal;
      this.partition = partition;
    }

    @Override
    Product2<K, C> changed(Product2<K, C> record) {
      seal.open(partition, (UnsafeRow) record._2());
      return record;
    }
  }

  private abstract static class Rows<K, V> extends AbstractIterator<Product2<K, V>> {
    private final Iterator<Product2<K, V>> rows;

    Rows(Iterator<Product2<K, V>> rows) {
      this.rows = rows;
    }

    abstract Product2<K, V> changed(Product2<K, V> record);

    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public Product2<K, V> next() {
      return changed(rows.next());
    }
  }
}
