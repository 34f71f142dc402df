package org.penstock.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.util.RawValue;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.penstock.Handovers;

/**
 * Reports on their way to the driver: the executor keeps each until the driver has said that it is there, and the driver
 * takes each once, however often it comes. So neither a lost question nor a lost answer loses or doubles one.
 */
public final class Reports {
  private Reports() {}

  private static final int MOST = 20_000;
  private static final String DONE = "{\"done\":";
  private static final String FULL = "{\"full\":";
  private static final String WORKER = "{\"worker\""; // totals: the next one says the same and more
  private static final String FOOTPRINT = "{\"footprint\"";

  /** A report of a run, with its number among all of its executor. */
  public record Numbered(long number, String run, String json) {}

  static String failure(String task, int replica, String problem) {
    return Json.text(Map.of("failed", Map.of("task", task, "replica", replica, "problem", problem)));
  }

  /** A worker died; `shown` is what it showed of itself, as `penstock/epochs/killers.py` reads it. */
  static String restart(String task, int replica, String how, String shown) {
    return Json.text(Map.of("restarted", Map.of("task", task, "replica", replica, "how", how, "shown", shown)));
  }

  /** A replica of a task has written down an epoch, or (last) all of the batch; `said` is JSON of its worker, null without one. */
  static String done(String task, int replica, int pool, long epoch, boolean valid, boolean last, String said) {
    ObjectNode done = Json.MAPPER.createObjectNode();
    done.put("task", task).put("replica", replica).put("pool", pool);
    done.put("epoch", epoch).put("valid", valid).put("last", last);
    if (said != null) {
      done.putRawValue("said", new RawValue(said));
    }
    return DONE + Json.text(done) + "}";
  }

  static boolean isDone(String json) {
    return json.startsWith(DONE);
  }

  /** Before a replica more waits for the end of an epoch than should. */
  static String full(String task, int replica) {
    return FULL + Json.text(Map.of("task", task, "replica", replica)) + "}";
  }

  static boolean isFull(String json) {
    return json.startsWith(FULL);
  }

  static String gone(long pid) {
    return Json.text(Map.of("gone", pid));
  }

  /** How many connections this executor has closed because of what came over them, and what the last one was. */
  static String refused(long count, String last) {
    return Json.text(Map.of("refused", Map.of("count", count, "last", last)));
  }

  /** What this executor takes of its machine; see Footprint. */
  static String footprint(String json) {
    return FOOTPRINT + ":" + json + "}";
  }

  /** A report of a worker, and what waits before it and in all of its executor; null where nobody knows. */
  static String withQueue(String report, String queue) {
    if (queue == null) {
      return report;
    }
    String shuffle = "[" + Handovers.heldBytes() + "," + Handovers.limitBytes() + "]";
    return report.substring(0, report.length() - 1) + ",\"queue\":" + queue + ",\"shuffle\":" + shuffle + "}";
  }

  /** Bounds what waits: the oldest regular report goes, never one of an event. */
  static <T> void keepFew(Deque<T> waiting, Function<T, String> json) {
    if (waiting.size() <= MOST) {
      return;
    }
    for (Iterator<T> oldest = waiting.iterator(); oldest.hasNext(); ) {
      String report = json.apply(oldest.next());
      if (report.startsWith(WORKER) || report.startsWith(FOOTPRINT)) {
        oldest.remove();
        return;
      }
    }
  }

  /** The executor's side. */
  public static final class Outgoing {
    private final Deque<Numbered> waiting = new ArrayDeque<>();
    private long last;

    public synchronized void add(String run, String json) {
      waiting.add(new Numbered(++last, run, json));
      keepFew(waiting, Numbered::json);
    }

    /** All that the driver is not known to have, in order. */
    public synchronized List<Numbered> pending() {
      return new ArrayList<>(waiting);
    }

    /** The driver has everything up to this number. */
    public synchronized void delivered(long number) {
      while (!waiting.isEmpty() && waiting.peek().number() <= number) {
        waiting.poll();
      }
    }
  }

  /** What the driver did not have yet, and the number up to which it has everything now. */
  public record Taken(List<Numbered> fresh, long upTo) {}

  /** The driver's side. */
  public static final class Incoming {
    private final Map<String, Long> taken = new HashMap<>();

    /** What is new of an agent, in order. */
    public synchronized Taken take(String agent, List<Numbered> reports) {
      long known = taken.getOrDefault(agent, 0L);
      List<Numbered> fresh = new ArrayList<>();
      for (Numbered report : reports) {
        if (report.number() > known) {
          known = report.number();
          fresh.add(report);
        }
      }
      taken.put(agent, known);
      return new Taken(fresh, known);
    }
  }
}
