package org.penstock.bridge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.penstock.Refusals;

/** The executor's side of the control path: fetches orders, hands them to workers and pumps, sends reports up. */
final class Agent {
  private static final long POLL_MS = 20;
  private static final long EXCHANGE_OLD_NS = 1_000_000_000L;
  private static final long REFUSALS_EVERY_NS = 1_000_000_000L;
  private static final long FOOTPRINT_EVERY_MS = 1_000;
  private static volatile Agent current;

  private final PenstockPlugin.DriverLink driver;
  private final Thread thread = new Thread(this::loop, "penstock-agent");
  private final Thread measuring = new Thread(this::measure, "penstock-agent");
  private final Map<String, Orders> orders = new ConcurrentHashMap<>();
  private final Map<String, Workers> workers = new HashMap<>();
  private final Reports.Outgoing reports = new Reports.Outgoing();
  private final Set<Pump> pumps = ConcurrentHashMap.newKeySet();
  private final Lease lease;
  private volatile Exchange exchange;
  private long refusalsTold;
  private long refusalsToldNs = System.nanoTime() - REFUSALS_EVERY_NS;
  private volatile boolean closed;

  /** A question to the driver and its answer: the first and last time by this clock, the two between by the driver's. */
  record Exchange(long sentNs, long receivedNs, long answeredNs, long returnedNs) {
    private long onTheWayNs() {
      return returnedNs - sentNs - (answeredNs - receivedNs);
    }
  }

  private Agent(PenstockPlugin.DriverLink driver) {
    this.driver = driver;
    this.lease = driver.isInProcess() ? Lease.unlimited() : Lease.startingNow();
  }

  static Agent start(PenstockPlugin.DriverLink driver) {
    Agent agent = new Agent(driver);
    current = agent;
    for (Thread one : List.of(agent.thread, agent.measuring)) {
      one.setDaemon(true);
      one.start();
    }
    return agent;
  }

  static Agent current() {
    Agent agent = current;
    if (agent == null) {
      throw new IllegalStateException(
          "the Penstock plugin is not loaded in this executor: start Spark with spark.plugins="
              + PenstockPlugin.class.getName());
    }
    return agent;
  }

  /** The workers of a run in this executor; the run is polled for from now on. */
  Workers workers(RunSpec run) throws IOException {
    synchronized (workers) {
      if (closed) {
        throw new IOException("this executor is shutting down");
      }
      Workers of = workers.get(run.id());
      if (of == null) {
        of = new Workers(run, this);
        workers.put(run.id(), of);
        workers.notifyAll();
      }
      return of;
    }
  }

  /** From now on orders are no older than the driver's at the time of this call. */
  void refresh(String run) throws Exception {
    Map<String, Long> known = known();
    known.put(run, version(run));
    poll(known);
    if (orders.get(run) == null) {
      throw new IOException("the driver no longer knows run " + run);
    }
  }

  Orders orders(String run) {
    return orders.get(run);
  }

  void sourceDone(String run, int partition) throws Exception {
    driver.sourceDone(run, partition);
  }

  long sourceStarts(String run, long batch) throws Exception {
    return driver.sourceStarts(run, batch);
  }

  void report(String run, String json) {
    reports.add(run, json);
  }

  void register(Pump pump) {
    pumps.add(pump);
  }

  void unregister(Pump pump) {
    pumps.remove(pump);
  }

  private void loop() {
    while (!closed) {
      try {
        synchronized (workers) {
          while (workers.isEmpty() && !closed) {
            workers.wait();
          }
        }
        poll(known());
        pumps.forEach(Pump::tend);
        pumps.forEach(Pump::tellBehind);
        tendWorkers();
        tellRefusals();
        Thread.sleep(POLL_MS);
      } catch (InterruptedException stop) {
        return;
      } catch (Exception unreachable) {
        // The driver is busy or gone. Workers keep their last orders until their lease is over.
        if (closed) {
          return;
        }
        try {
          Thread.sleep(POLL_MS * 10);
        } catch (InterruptedException stop) {
          return;
        }
      }
    }
  }

  private void poll(Map<String, Long> known) throws Exception {
    long sentNs = System.nanoTime();
    PenstockPlugin.News news = driver.poll(known, reports.pending());
    note(new Exchange(sentNs, news.receivedNs(), news.answeredNs(), System.nanoTime()));
    reports.delivered(news.reported());
    for (Orders newer : news.orders()) {
      adopt(newer);
    }
    for (String run : news.closed()) {
      closeRun(run);
      driver.poll(known(), reports.pending());
    }
    lease.renew(sentNs); // not before the workers of runs that are over have ended
  }

  private void tendWorkers() {
    Map<String, Workers> all;
    synchronized (workers) {
      all = new HashMap<>(workers);
    }
    all.forEach((run, of) -> {
      Orders now = orders.get(run);
      if (now != null) {
        of.tend(now.batch());
      }
    });
  }

  /** All runs hear of connections that were closed, though not of each by itself. */
  private void tellRefusals() {
    Refusals.Seen seen = Refusals.seen();
    long now = System.nanoTime();
    if (seen.count() > refusalsTold && now - refusalsToldNs >= REFUSALS_EVERY_NS) {
      refusalsTold = seen.count();
      refusalsToldNs = now;
      known().keySet().forEach(run -> report(run, Reports.refused(seen.count(), seen.last())));
    }
  }

  /** All runs hear what this executor takes: not in the thread that has to be quick with orders. */
  private void measure() {
    Footprint footprint = new Footprint();
    try {
      while (!closed) {
        Thread.sleep(FOOTPRINT_EVERY_MS);
        Set<String> runs = known().keySet();
        if (runs.isEmpty()) {
          footprint = new Footprint(); // the time without a run is nobody's
        } else {
          String told = Reports.footprint(footprint.next());
          runs.forEach(run -> report(run, told));
        }
      }
    } catch (InterruptedException stop) {
      // The executor is closed.
    }
  }

  /** The fastest exchange of the last second tells workers most about how this clock and the driver's differ. */
  private void note(Exchange fresh) {
    Exchange held = exchange;
    if (held == null
        || fresh.onTheWayNs() <= held.onTheWayNs()
        || fresh.returnedNs() - held.returnedNs() > EXCHANGE_OLD_NS) {
      exchange = fresh;
    }
  }

  /** For workers, as JSON: the four times (null before the first question was answered), and the lease (null without one). */
  String link() {
    Exchange held = exchange;
    ObjectNode link = Json.MAPPER.createObjectNode();
    if (held != null) {
      ArrayNode times = link.putArray("exchange");
      times.add(held.sentNs()).add(held.receivedNs()).add(held.answeredNs()).add(held.returnedNs());
    }
    if (lease.isLimited()) {
      link.put("lease_until_ns", lease.untilNs());
    }
    return Json.text(link);
  }

  Lease lease() {
    return lease;
  }

  /** New replicas are up before anybody is told to send to them, so the first items do not wait for a fork. */
  private synchronized void adopt(Orders newer) {
    Orders have = orders.get(newer.run());
    if (have != null && have.version() >= newer.version()) {
      return;
    }
    orders.put(newer.run(), newer);
    pumps.forEach(Pump::tend);
    Workers of;
    synchronized (workers) {
      of = workers.get(newer.run());
    }
    if (of != null && (have == null || !have.switches().equals(newer.switches()))) {
      of.tell(newer);
    }
  }

  private Map<String, Long> known() {
    Map<String, Long> known = new HashMap<>();
    synchronized (workers) {
      workers.keySet().forEach(run -> known.put(run, version(run)));
    }
    return known;
  }

  private long version(String run) {
    Orders have = orders.get(run);
    return have == null ? -1 : have.version();
  }

  private void closeRun(String run) {
    Workers of;
    synchronized (workers) {
      of = workers.remove(run);
    }
    orders.remove(run);
    if (of != null) {
      of.close();
    }
  }

  void close() {
    closed = true;
    thread.interrupt();
    measuring.interrupt();
    List<String> runs;
    synchronized (workers) {
      runs = new ArrayList<>(workers.keySet());
    }
    runs.forEach(this::closeRun);
  }
}
