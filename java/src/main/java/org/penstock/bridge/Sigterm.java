package org.penstock.bridge;

import java.util.concurrent.atomic.AtomicBoolean;
import sun.misc.Signal;

/**
 * SIGTERM to all processes of a service, as systemd sends it: the Java of a driver ends with its Python, not before it. Python
 * drains the flow then, and needs Spark for that.
 */
final class Sigterm {
  private static final String STARTED_BY_PYTHON = "_PYSPARK_DRIVER_CONN_INFO_PATH";
  private static final AtomicBoolean LEFT = new AtomicBoolean();

  private Sigterm() {}

  /** Only where Python has started this process and is there: it ends when Python closes its standard input, however that ends. */
  static void leaveToDriver() {
    if (System.getenv(STARTED_BY_PYTHON) == null || LEFT.getAndSet(true)) {
      return;
    }
    ProcessHandle python = ProcessHandle.current().parent().orElse(null);
    if (python != null) {
      Signal.handle(new Signal("TERM"), told -> {
        if (!python.isAlive()) {
          System.exit(128 + told.getNumber());
        }
      });
    }
  }
}
