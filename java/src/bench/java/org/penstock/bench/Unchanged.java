package org.penstock.bench;

import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;

/** An operator of the baselines that does nothing, but keeps Spark from merging the shuffles around it. */
public final class Unchanged implements MapPartitionsFunction<Row, Row> {
  private static final long serialVersionUID = 1L;

  @Override
  public Iterator<Row> call(Iterator<Row> rows) {
    return rows;
  }
}
