package org.apache.spark.penstock;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DirectShufflePartitionID;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.status.api.v1.ExecutorSummary;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Everything Penstock touches of Spark that is not public API. A new Spark version is ported here. */
public final class SparkInternals {
  private SparkInternals() {}

  /** Lets a thread of ours read the upstream iterator of a task: the real-time source asks for the context. */
  public static void setTaskContext(TaskContext context) {
    TaskContext$.MODULE$.setTaskContext(context);
  }

  public static void unsetTaskContext() {
    TaskContext$.MODULE$.unset();
  }

  /** For methods of Spark's, which may throw anything and do not say so. */
  @SuppressWarnings("unchecked")
  public static <E extends Throwable> E unchecked(Throwable problem) throws E {
    throw (E) problem;
  }

  /** The settings of Hadoop in this process, with those that the flow's Spark was given. */
  public static Configuration hadoopConf() {
    return SparkHadoopUtil.get().newConfiguration(SparkEnv.get().conf());
  }

  /** Whether an executor is the one inside the driver of local mode. */
  public static boolean isDriver(String executor) {
    return executor.equals(SparkContext$.MODULE$.DRIVER_IDENTIFIER());
  }

  /** How many tasks may run at once on the executors of now, without those that Spark is ending. */
  public static int slots(SparkContext context) {
    return context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile());
  }

  /** By executor, as JSON: how many tasks it may run at a time, and how many it runs. */
  public static String slotsByExecutor(SparkContext context) {
    scala.collection.Map<String, Object> running =
        context.taskScheduler() instanceof TaskSchedulerImpl scheduler
            ? scheduler.runningTasksByExecutors()
            : scala.collection.immutable.Map$.MODULE$.empty();
    ObjectNode all = JsonNodeFactory.instance.objectNode();
    for (ExecutorSummary executor : CollectionConverters.asJava(context.statusStore().executorList(true))) {
      if (executor.maxTasks() > 0) { // a driver beside its executors runs none
        Object used = running.get(executor.id()).getOrElse(() -> 0);
        all.putArray(executor.id()).add(executor.maxTasks()).add((int) used);
      }
    }
    return all.toString();
  }

  /** Lets Spark end an executor that no longer answers, and start another in its place where the cluster does that. */
  public static boolean replaceExecutor(SparkContext context, String executor) {
    return context.killAndReplaceExecutor(executor);
  }

  /**
   * Gives every `repartitionById(n, column)` the width that `widthOf(column name)` wants; 0 leaves it as it is.
   * Spark optimises a streaming plan anew for each batch, so a width changed between two batches needs no restart.
   */
  public static LogicalPlan withWidths(LogicalPlan plan, ToIntFunction<String> widthOf) {
    List<LogicalPlan> children = new ArrayList<>();
    boolean changed = false;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      LogicalPlan next = withWidths(child, widthOf);
      changed |= next != child;
      children.add(next);
    }
    LogicalPlan rebuilt =
        changed ? plan.withNewChildren(CollectionConverters.asScala(children).toIndexedSeq()) : plan;
    if (!(rebuilt instanceof RepartitionByExpression)) {
      return rebuilt;
    }
    RepartitionByExpression exchange = (RepartitionByExpression) rebuilt;
    String column = directColumn(exchange);
    int width = column == null ? 0 : widthOf.applyAsInt(column);
    if (width == 0 || width == exchange.numPartitions()) {
      return rebuilt;
    }
    return new RepartitionByExpression(
        exchange.partitionExpressions(), exchange.child(), Option.apply(width), exchange.optAdvisoryPartitionSize());
  }

  private static String directColumn(RepartitionByExpression exchange) {
    if (exchange.partitionExpressions().size() != 1) {
      return null;
    }
    Expression by = exchange.partitionExpressions().apply(0);
    if (!(by instanceof DirectShufflePartitionID)) {
      return null;
    }
    for (Expression at = by; ; at = at.children().apply(0)) {
      if (at instanceof AttributeReference) {
        return ((AttributeReference) at).name();
      }
      if (at.children().size() != 1) {
        return null;
      }
    }
  }
}
