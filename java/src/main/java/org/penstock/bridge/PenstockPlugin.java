package org.penstock.bridge;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.penstock.LinkShuffleManager;
import org.apache.spark.penstock.ShuffleSecret;
import org.apache.spark.penstock.SparkInternals;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/**
 * `spark.plugins`: the control path. Executors ask, the driver answers; no port of ours is opened. Messages are JSON
 * texts, because Spark reads them with a class loader that does not know the jars of an application.
 */
public final class PenstockPlugin implements SparkPlugin {

  /** What an executor says; exactly one part is there. */
  record Message(Poll poll, SourceStarts starts, SourceDone done, Unlinked unlinked) {}

  /** Is there news of these runs (with the version it has)? Here are the reports that were not confirmed. */
  record Poll(
      String executor, String agent, Neighbour process, Map<String, Long> known, List<Reports.Numbered> reports) {}

  /** A source worker starts in this batch; when did the run begin? */
  record SourceStarts(String run, long batch) {}

  /** A partition of a source has run dry. */
  record SourceDone(String run, int partition) {}

  /** This executor has no connections to others, and why. */
  record Unlinked(String why) {}

  /**
   * Newer orders, the runs that are over, the number up to which all reports are there, and when (by the driver's clock) the
   * question came and was answered.
   */
  record News(List<Orders> orders, List<String> closed, long reported, long receivedNs, long answeredNs) {}

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        Sigterm.leaveToDriver();
        context.addSparkListener(new SparkListener() {
          @Override
          public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
            Runs.executorRemoved(removed.executorId());
          }
        });
        return ShuffleSecret.made(context.conf());
      }

      @Override
      public Object receive(Object json) throws JsonProcessingException {
        long receivedNs = System.nanoTime();
        Object answer = answer(Json.MAPPER.readValue((String) json, Message.class), receivedNs);
        return answer instanceof News news ? Json.text(news) : answer;
      }
    };
  }

  private static Object answer(Message message, long receivedNs) {
    if (message.starts() != null) {
      Run run = Runs.get(message.starts().run());
      return run == null ? 0L : run.sourceStarts(message.starts().batch());
    }
    if (message.done() != null) {
      Run run = Runs.get(message.done().run());
      if (run != null) {
        run.sourceDone(message.done().partition());
      }
      return 0L;
    }
    if (message.unlinked() != null) {
      LinkShuffleManager.giveUp(message.unlinked().why());
      return 0L;
    }
    return answer(message.poll(), receivedNs);
  }

  private static News answer(Poll poll, long receivedNs) {
    Reports.Taken taken = Runs.reports().take(poll.agent(), poll.reports());
    for (Reports.Numbered report : taken.fresh()) {
      Run run = Runs.reportedTo(report.run());
      if (run != null) {
        run.report(poll.executor(), report.json());
      }
    }
    List<Orders> newer = new ArrayList<>();
    List<String> closed = new ArrayList<>();
    poll.known().forEach((id, version) -> {
      Run run = Runs.get(id);
      if (run == null) {
        closed.add(id);
        return;
      }
      run.endBatchIfOld();
      run.noteAdopted(poll.executor(), version);
      if (run.orders().version() > version) {
        newer.add(run.orders());
      }
    });
    Runs.noteHeld(poll.executor(), poll.known().keySet(), poll.process());
    return new News(newer, closed, taken.upTo(), receivedNs, System.nanoTime());
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private Agent agent;

      @Override
      public void init(PluginContext context, Map<String, String> extra) {
        ShuffleSecret.know(extra);
        DriverLink driver = new DriverLink(context);
        driver.greet();
        LinkShuffleManager.setWhenUnable(driver::unlinked);
        agent = Agent.start(driver);
      }

      @Override
      public void shutdown() {
        agent.close();
      }
    };
  }

  /** An executor's way to the driver. */
  static final class DriverLink {
    private final PluginContext context;
    private final String agent = UUID.randomUUID().toString(); // executors of two sessions may have the same id
    private final Neighbour process = Neighbour.self();

    DriverLink(PluginContext context) {
      this.context = context;
    }

    /**
     * Asks for nothing. Spark looks for its driver at the first question and only then: had that been a question of a task that was
     * just interrupted, all later ones of this executor would fail.
     */
    void greet() {
      try {
        poll(Map.of(), List.of());
      } catch (Exception unreachable) {
        throw new IllegalStateException("the driver cannot be reached", unreachable);
      }
    }

    /** Other executors cannot reach this one: the driver chooses another shuffle. */
    void unlinked(String why) {
      try {
        ask(new Message(null, null, null, new Unlinked(why)));
      } catch (Exception unreachable) {
        throw new IllegalStateException("the driver cannot be reached", unreachable);
      }
    }

    /** Whether this executor is inside the driver. */
    boolean isInProcess() {
      return SparkInternals.isDriver(context.executorID());
    }

    News poll(Map<String, Long> known, List<Reports.Numbered> reports) throws Exception {
      Object answer = ask(new Message(new Poll(context.executorID(), agent, process, known, reports), null, null, null));
      return answer instanceof News news ? news : Json.MAPPER.readValue((String) answer, News.class);
    }

    long sourceStarts(String run, long batch) throws Exception {
      return ((Number) ask(new Message(null, new SourceStarts(run, batch), null, null))).longValue();
    }

    void sourceDone(String run, int partition) throws Exception {
      ask(new Message(null, null, new SourceDone(run, partition), null));
    }

    /** An agent asks fifty times a second: within one process that takes a call. */
    private Object ask(Message message) throws Exception {
      return isInProcess() ? answer(message, System.nanoTime()) : context.ask(Json.text(message));
    }
  }
}
