package org.penstock.bridge;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/** `spark.plugins`: the control path. Executors ask, the driver answers; no port of ours is opened. */
public final class PenstockPlugin implements SparkPlugin {

  /** What an executor asks: news of these runs (with the version it has), and here are its workers' reports. */
  record Poll(String executor, Map<String, Long> known, Map<String, List<String>> reports) implements Serializable {}

  /** Newer settings, and the runs that are over. */
  record News(List<Settings> settings, List<String> closed) implements Serializable {}

  /** A source worker starts in this batch; when did the run begin? */
  record SourceStarts(String run, long batch) implements Serializable {}

  /** A partition of a source has run dry. */
  record SourceDone(String run, int partition) implements Serializable {}

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Object receive(Object message) {
        if (message instanceof SourceDone) {
          SourceDone done = (SourceDone) message;
          Run run = Runs.get(done.run());
          if (run != null) {
            run.sourceDone(done.partition());
          }
          return true;
        }
        if (message instanceof SourceStarts) {
          SourceStarts start = (SourceStarts) message;
          Run run = Runs.get(start.run());
          return run == null ? 0L : run.sourceStarts(start.batch());
        }
        return answer((Poll) message);
      }
    };
  }

  static News answer(Poll poll) {
    poll.reports().forEach((id, reports) -> {
      Run run = Runs.get(id);
      if (run != null) {
        reports.forEach(run::report);
      }
    });
    List<Settings> newer = new ArrayList<>();
    List<String> closed = new ArrayList<>();
    poll.known().forEach((id, version) -> {
      Run run = Runs.get(id);
      if (run == null) {
        closed.add(id);
      } else if (run.settings().version() > version) {
        newer.add(run.settings());
      }
    });
    Runs.noteHeld(poll.executor(), poll.known().keySet());
    return new News(newer, closed);
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private Agent agent;

      @Override
      public void init(PluginContext context, Map<String, String> extra) {
        agent = Agent.start(new DriverLink(context));
      }

      @Override
      public void shutdown() {
        agent.close();
        Runs.forgetExecutor(agent.executor());
      }
    };
  }

  /** An executor's way to the driver. */
  static final class DriverLink {
    private final PluginContext context;

    DriverLink(PluginContext context) {
      this.context = context;
    }

    String executor() {
      return context.executorID();
    }

    News poll(Map<String, Long> known, Map<String, List<String>> reports) throws Exception {
      return (News) context.ask(new Poll(executor(), new HashMap<>(known), reports));
    }

    void sourceDone(String run, int partition) throws Exception {
      context.ask(new SourceDone(run, partition));
    }

    long sourceStarts(String run, long batch) throws Exception {
      return (Long) context.ask(new SourceStarts(run, batch));
    }
  }
}
