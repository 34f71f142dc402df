package org.apache.spark.penstock;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.penstock.bridge.Runs;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** `spark.sql.extensions`: the rule that sizes the layers of running flows at each batch. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectOptimizerRule(
        new AbstractFunction1<>() {
          @Override
          public Rule<LogicalPlan> apply(org.apache.spark.sql.SparkSession session) {
            return new LayerWidths();
          }
        });
    return BoxedUnit.UNIT;
  }

  /** Rewrites the number of partitions of a layer to its present pool sizes. */
  static final class LayerWidths extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return SparkInternals.withWidths(plan, Runs::widthOfColumn);
    }
  }
}
