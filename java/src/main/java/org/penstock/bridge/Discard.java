package org.penstock.bridge;

import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/** The query's own sink. Penstock's sinks are Python tasks, so nothing ever reaches it. */
public final class Discard extends ForeachWriter<Row> {
  @Override
  public boolean open(long partition, long epoch) {
    return true;
  }

  @Override
  public void process(Row row) {
    throw new FlowException("an envelope left the last layer of a flow");
  }

  @Override
  public void close(Throwable problem) {}
}
