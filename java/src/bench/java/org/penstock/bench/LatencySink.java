package org.penstock.bench;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/**
 * Sink of the baselines: keeps (sequence number, due time, arrival time) of every row of this JVM until drained.
 * Rows are (seq bigint, due bigint) with times on the monotonic clock, in nanoseconds.
 */
public final class LatencySink extends ForeachWriter<Row> {
  private static final long serialVersionUID = 1L;
  private static final Object LOCK = new Object();
  private static List<long[]> seen = new ArrayList<>();

  @Override
  public boolean open(long partition, long epoch) {
    return true;
  }

  @Override
  public void process(Row row) {
    long now = System.nanoTime();
    long[] record = {row.getLong(0), row.getLong(1), now};
    synchronized (LOCK) {
      seen.add(record);
    }
  }

  @Override
  public void close(Throwable error) {}

  /** How many rows were seen since they were last drained. */
  public static int count() {
    synchronized (LOCK) {
      return seen.size();
    }
  }

  /** Everything seen since the last call, as big-endian longs (seq, due, arrival) one after the other. */
  public static byte[] drain() {
    List<long[]> taken;
    synchronized (LOCK) {
      taken = seen;
      seen = new ArrayList<>();
    }
    ByteBuffer packed = ByteBuffer.allocate(taken.size() * 24);
    for (long[] record : taken) {
      for (long value : record) {
        packed.putLong(value);
      }
    }
    return packed.array();
  }
}
