package org.penstock.bench;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Source of the baselines: rows (seq bigint, due bigint, payload binary of 32 bytes) at a constant rate, open loop.
 * Row k is due at start + k / rate on the monotonic clock of this host, however late it is read; options: rate
 * (rows per second). Works in real-time mode and in micro-batch mode, with one partition.
 */
public final class PacedRows implements TableProvider {
  private static final StructType SCHEMA =
      new StructType()
          .add("seq", DataTypes.LongType)
          .add("due", DataTypes.LongType)
          .add("payload", DataTypes.BinaryType);

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new PacedTable();
  }

  private static final class PacedTable implements Table, SupportsRead {
    @Override
    public String name() {
      return "paced rows";
    }

    @Override
    public StructType schema() {
      return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      double rate = options.getDouble("rate", 1000);
      return () ->
          new Scan() {
            @Override
            public StructType readSchema() {
              return SCHEMA;
            }

            @Override
            public MicroBatchStream toMicroBatchStream(String checkpoint) {
              return new PacedStream(new Pace(System.nanoTime(), rate));
            }
          };
    }
  }

  /** When rows are due. */
  private record Pace(long startNs, double rate) implements Serializable {
    long due(long seq) {
      return startNs + Math.round(seq / rate * 1e9);
    }

    long rowsBy(long nowNs) {
      return Math.max(0, (long) Math.floor((nowNs - startNs) * 1e-9 * rate) + 1);
    }

    InternalRow row(long seq) {
      byte[] payload = new byte[32];
      ByteBuffer.wrap(payload).putLong(seq);
      return new GenericInternalRow(new Object[] {seq, due(seq), payload});
    }
  }

  private static final class Rows extends Offset implements PartitionOffset {
    private static final long serialVersionUID = 1L;
    private final long next;

    Rows(long next) {
      this.next = next;
    }

    @Override
    public String json() {
      return Long.toString(next);
    }
  }

  /** Rows from `first` on; until `end` in micro-batch mode, for ever (-1) in real-time mode. */
  private record Range(Pace pace, long first, long end) implements InputPartition {}

  private static final class PacedStream implements MicroBatchStream, SupportsRealTimeMode {
    private final Pace pace;

    PacedStream(Pace pace) {
      this.pace = pace;
    }

    @Override
    public Offset initialOffset() {
      return new Rows(0);
    }

    @Override
    public Offset latestOffset() {
      return new Rows(pace.rowsBy(System.nanoTime()));
    }

    @Override
    public Offset deserializeOffset(String json) {
      return new Rows(Long.parseLong(json.trim()));
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
      return new InputPartition[] {new Range(pace, ((Rows) start).next, ((Rows) end).next)};
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start) {
      return new InputPartition[] {new Range(pace, ((Rows) start).next, -1)};
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] offsets) {
      return (Rows) offsets[0];
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new Readers();
    }

    @Override
    public void commit(Offset end) {}

    @Override
    public void stop() {}
  }

  private static final class Readers implements PartitionReaderFactory {
    private static final long serialVersionUID = 1L;

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new Reader((Range) partition);
    }
  }

  private static final class Reader implements SupportsRealTimeRead<InternalRow> {
    private final Range range;
    private long next;
    private InternalRow current;

    Reader(Range range) {
      this.range = range;
      this.next = range.first();
    }

    @Override
    public RecordStatus nextWithTimeout(Long timeoutMs) {
      long deadline = System.nanoTime() + timeoutMs * 1_000_000L;
      long due = range.pace().due(next);
      for (long now = System.nanoTime(); now < due; now = System.nanoTime()) {
        if (now >= deadline) {
          return RecordStatus.newStatusWithoutArrivalTime(false);
        }
        LockSupport.parkNanos(Math.min(due, deadline) - now);
      }
      current = range.pace().row(next++);
      return RecordStatus.newStatusWithoutArrivalTime(true);
    }

    @Override
    public boolean next() {
      if (next >= range.end()) {
        return false;
      }
      current = range.pace().row(next++);
      return true;
    }

    @Override
    public InternalRow get() {
      return current;
    }

    @Override
    public PartitionOffset getOffset() {
      return new Rows(next);
    }

    @Override
    public void close() {}
  }
}
