package org.penstock.bridge;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.penstock.SparkInternals;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
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

/** All sources of a flow as one real-time table: each partition is a replica of a source unit with its Python worker. */
public final class FlowSource implements TableProvider {
  private static final int VERSION = 2;

  /** The splits that a replica of a source reads, by their names; the checkpoint knows positions by these. */
  public record Splits(String source, String[] splits) {}

  /**
   * What the driver tells the source; set with Run.setSource before the query starts, and changed between batches. Partition
   * i of the first layer reads `splits[i]`; `start` says where each begins, in the format of a FlowOffset.
   */
  public record Spec(RunSpec run, UnitSpec[] units, Splits[] splits, String start, String column, long commitMs) {
    /** The splits as a JSON array of {"source", "splits"}. */
    public static Spec of(
        RunSpec run, UnitSpec[] units, String splits, String start, String column, long commitMs)
        throws JsonProcessingException {
      return new Spec(run, units, Json.MAPPER.readValue(splits, Splits[].class), start, column, commitMs);
    }

    int width() {
      return splits.length;
    }
  }

  /** Where each split stands: {"version": 2, "sources": {source: {split: {"ordinal": n, "offset": ..., "done": false}}}}. */
  static final class FlowOffset extends Offset {
    private final String json;

    FlowOffset(String json) {
      this.json = json;
    }

    @Override
    public String json() {
      return json;
    }
  }

  /** Where a replica stands: {"positions": {split: position}, "done": false}. */
  record Reached(String source, String news) implements PartitionOffset {}

  record Part(RunSpec run, UnitSpec unit, SourceOrder order, long batch) implements InputPartition {}

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return schema(options);
  }

  private static StructType schema(CaseInsensitiveStringMap options) {
    return new StructType()
        .add(Runs.get(options.get("run")).source().column(), DataTypes.IntegerType)
        .add("payload", DataTypes.BinaryType);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(properties);
    return new SourceTable(Runs.get(options.get("run")), schema(options));
  }

  private record SourceTable(Run run, StructType schema) implements Table, SupportsRead {
    @Override
    public String name() {
      return run.source().run().flow();
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return () -> new Scan() {
        @Override
        public StructType readSchema() {
          return schema;
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
          return new Stream(run);
        }
      };
    }
  }

  /** The driver's side: offsets, and the gate between batches. */
  private static final class Stream implements MicroBatchStream, SupportsRealTimeMode {
    private final Run run;
    private FlowSource.Spec spec;
    private JsonNode runPositions;
    private long batch;

    Stream(Run run) {
      this.run = run;
      this.spec = run.source();
    }

    @Override
    public Offset initialOffset() {
      return new FlowOffset(spec.start());
    }

    @Override
    public Offset latestOffset() {
      try {
        batch = run.passGate();
        spec = run.source();
      } catch (InterruptedException stop) {
        // Spark takes only the bare exception for a stop; wrapped, the query would end with an error.
        throw SparkInternals.<RuntimeException>unchecked(stop);
      }
      return new FlowOffset(spec.start());
    }

    @Override
    public Offset deserializeOffset(String json) {
      return new FlowOffset(json);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
      throw new UnsupportedOperationException("Penstock runs in real-time mode only");
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start) {
      JsonNode positions = Json.parse(start.json());
      if (positions.path("version").asInt() != VERSION) {
        throw new FlowException("the checkpoint of flow " + spec.run().flow() + " holds positions of another format");
      }
      if (runPositions == null) {
        runPositions = positions;
      }
      JsonNode starts = Json.parse(spec.start());
      InputPartition[] parts = new InputPartition[spec.width()];
      for (UnitSpec unit : spec.units()) {
        for (int i = unit.first(); i < unit.first() + unit.pool(); i++) {
          Splits splits = spec.splits()[i];
          SourceOrder order =
              new SourceOrder(
                  i, splits.source(), positions(splits, positions, starts), positions(splits, runPositions, starts));
          parts[i] = new Part(spec.run(), unit, order, batch);
        }
      }
      return parts;
    }

    /** A split that is new since then begins at its start. */
    private static String positions(Splits splits, JsonNode known, JsonNode starts) {
      ObjectNode found = Json.MAPPER.createObjectNode();
      for (String split : splits.splits()) {
        JsonNode position = known.path("sources").path(splits.source()).get(split);
        found.set(split, position == null ? starts.path("sources").path(splits.source()).get(split) : position);
      }
      return Json.text(found);
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] reached) {
      ObjectNode merged = Json.MAPPER.createObjectNode().put("version", VERSION);
      ObjectNode sources = merged.putObject("sources");
      boolean done = true;
      for (PartitionOffset each : reached) {
        Reached one = (Reached) each;
        JsonNode news = Json.parse(one.news());
        sources.withObjectProperty(one.source()).setAll((ObjectNode) news.get("positions"));
        done &= news.get("done").asBoolean();
      }
      if (done) {
        run.markExhausted();
      }
      return new FlowOffset(Json.text(merged));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return (PartitionReaderFactory & Serializable) part -> new Reader((Part) part);
    }

    @Override
    public void commit(Offset end) {}

    @Override
    public void stop() {}
  }

  /** The executor's side of a partition: the rows of the source worker, until it has ended its part of the batch. */
  private static final class Reader implements SupportsRealTimeRead<InternalRow> {
    private static final long SPARK_DEADLINE_MARGIN_MS = 60_000;

    private final Pump pump;
    private final String source;
    private Iterator<Row> ready = List.<Row>of().iterator();
    private InternalRow row;

    Reader(Part part) {
      this.source = part.order().source();
      int replica = part.order().partition() - part.unit().first();
      try {
        pump = new Pump(part.run(), part.unit(), replica, part.batch(), part.order());
        pump.start(TaskContext.get(), () -> {});
      } catch (Exception problem) {
        throw new FlowException(problem);
      }
    }

    @Override
    public RecordStatus nextWithTimeout(Long timeoutMs) {
      long left = timeoutMs - SPARK_DEADLINE_MARGIN_MS;
      while (!ready.hasNext()) {
        List<Row> more = pump.take(Math.max(left, 1));
        if (more == null) {
          return RecordStatus.newStatusWithoutArrivalTime(false);
        }
        if (more.isEmpty() && left > 0) {
          endInput();
          left = 0;
        }
        ready = more.iterator();
      }
      Row next = ready.next();
      row = new GenericInternalRow(new Object[] {next.get(0), next.get(1)});
      return RecordStatus.newStatusWithoutArrivalTime(true);
    }

    private void endInput() {
      try {
        pump.endInput();
      } catch (Exception problem) {
        throw new FlowException(problem);
      }
    }

    @Override
    public boolean next() {
      throw new UnsupportedOperationException("Penstock runs in real-time mode only");
    }

    @Override
    public InternalRow get() {
      return row;
    }

    @Override
    public PartitionOffset getOffset() {
      return new Reached(source, pump.sourceNews());
    }

    @Override
    public void close() {}
  }
}
