package org.penstock.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What an executor takes of its machine: CPU time of this Java, memory of it and of everything that it has started. */
public final class Footprint {
  private static final long MEMORY_EVERY_NS = 5_000_000_000L; // the kernel walks over all pages for it
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private long sinceNs = System.nanoTime();
  private long cpuNs = SYSTEM.getProcessCpuTime();
  private long memoryNs;
  private long memoryBytes = -1;

  /** As JSON, from the last call until now; memory is left out where the system does not tell it. */
  public String next() {
    long nowNs = System.nanoTime();
    long nowCpuNs = SYSTEM.getProcessCpuTime();
    if (memoryBytes < 0 || nowNs - memoryNs >= MEMORY_EVERY_NS) {
      memoryNs = nowNs;
      memoryBytes = memoryOfAll();
    }
    ObjectNode told = Json.MAPPER.createObjectNode();
    told.put("cores", Runtime.getRuntime().availableProcessors());
    told.put("java_s", (nowCpuNs - cpuNs) / 1e9);
    told.put("over_s", (nowNs - sinceNs) / 1e9);
    if (memoryBytes >= 0) {
      told.put("memory_bytes", memoryBytes);
    }
    sinceNs = nowNs;
    cpuNs = nowCpuNs;
    return Json.text(told);
  }

  private static long memoryOfAll() {
    long own = kilobytes(Path.of("/proc/self/status"), "VmRSS:"); // it shares next to nothing, and has the most pages
    if (own < 0) {
      return -1;
    }
    return 1024 * (own + ProcessHandle.current().descendants().mapToLong(Footprint::memoryOf).sum());
  }

  /** Workers share most of their memory with the process that they were forked from: each page counts by its share. */
  private static long memoryOf(ProcessHandle process) {
    Path at = Path.of("/proc/" + process.pid());
    long shared = kilobytes(at.resolve("smaps_rollup"), "Pss:");
    return Math.max(0, shared >= 0 ? shared : kilobytes(at.resolve("status"), "VmRSS:"));
  }

  /** -1 for a process that is gone, and for what the system does not tell. */
  private static long kilobytes(Path file, String field) {
    try {
      List<String> lines = Files.readAllLines(file);
      return lines.stream()
          .filter(line -> line.startsWith(field))
          .mapToLong(line -> Long.parseLong(line.substring(field.length()).replace("kB", "").strip()))
          .findFirst()
          .orElse(-1);
    } catch (IOException gone) {
      return -1;
    }
  }
}
