package org.penstock.bridge;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.penstock.SparkInternals;
import org.apache.spark.sql.Row;

/**
 * A layer of a flow: every partition is a replica of a unit, or the relay that carries envelopes past this layer.
 * Spark serialises it anew for each batch, so units and relays that are changed between two batches reach the next one.
 */
public final class Layer implements MapPartitionsFunction<Row, Row> {
  private final RunSpec run;
  private final int index;
  private volatile UnitSpec[] units;
  private volatile int relay; // -1: none
  private volatile int nextRelay; // the relay of the layer after this one
  private long batch; // known when Spark serialises the layer for it

  public Layer(RunSpec run, int index, UnitSpec[] units, int relay, int nextRelay) {
    this.run = run;
    this.index = index;
    change(units, relay, nextRelay);
  }

  public void change(UnitSpec[] units, int relay, int nextRelay) {
    this.units = units;
    this.relay = relay;
    this.nextRelay = nextRelay;
  }

  private void writeObject(ObjectOutputStream out) throws IOException {
    Run now = Runs.get(run.id());
    batch = now == null ? -1 : now.batch();
    out.defaultWriteObject();
  }

  @Override
  public Iterator<Row> call(Iterator<Row> rows) throws Exception {
    TaskContext context = TaskContext.get();
    int partition = context.partitionId();
    if (partition == relay) {
      return relayed(rows);
    }
    for (UnitSpec unit : units) {
      if (unit.hosts(partition)) {
        return pumped(new Pump(run, unit, partition - unit.first(), batch, null), rows, context);
      }
    }
    throw new FlowException("layer " + index + " of flow " + run.flow() + " has no partition " + partition);
  }

  private static Iterator<Row> pumped(Pump pump, Iterator<Row> rows, TaskContext context) throws Exception {
    pump.start(context, () -> {
      SparkInternals.setTaskContext(context);
      try {
        while (rows.hasNext()) {
          byte[] bundle = (byte[]) rows.next().get(1);
          pump.deliver(Envelopes.split(bundle), pump.arrivedNs());
        }
        pump.endInput();
      } catch (Throwable problem) {
        pump.failWith(problem);
      } finally {
        SparkInternals.unsetTaskContext();
      }
    });
    return pump.rows();
  }

  private Iterator<Row> relayed(Iterator<Row> rows) {
    return new Iterator<>() {
      private Iterator<Row> ready = List.<Row>of().iterator();

      @Override
      public boolean hasNext() {
        while (!ready.hasNext() && rows.hasNext()) {
          List<Envelopes.Out> outs = new ArrayList<>();
          for (byte[] envelope : Envelopes.split((byte[]) rows.next().get(1))) {
            boolean arrives = Envelopes.layer(envelope) == index + 1;
            outs.add(new Envelopes.Out(arrives ? Envelopes.partition(envelope) : nextRelay, envelope));
          }
          ready = Envelopes.rows(outs).iterator();
        }
        return ready.hasNext();
      }

      @Override
      public Row next() {
        hasNext();
        return ready.next();
      }
    };
  }
}
