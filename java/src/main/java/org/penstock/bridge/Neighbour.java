package org.penstock.bridge;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * A JVM that says which process of which kernel it is, so that another on the same machine can tell whether it lives. Whatever
 * cannot be told is taken for alive.
 */
record Neighbour(String kernel, String namespaces, long pid, String startedTicks) {
  private static final Neighbour UNKNOWN = new Neighbour("", "", 0, "");
  private static final int STATE = 0; // among the fields of /proc/PID/stat behind the name
  private static final int STARTED = 19;

  static Neighbour self() {
    try {
      long pid = ProcessHandle.current().pid();
      return new Neighbour(
          Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip(),
          namespace("pid") + namespace("time"),
          pid,
          stat(pid)[STARTED]);
    } catch (IOException | UnsupportedOperationException noLinux) {
      return UNKNOWN;
    }
  }

  /** Whether `other` was on this machine and is no more. */
  boolean knowsDead(Neighbour other) {
    if (equals(UNKNOWN) || !kernel.equals(other.kernel) || !namespaces.equals(other.namespaces)) {
      return false;
    }
    try {
      String[] fields = stat(other.pid);
      return fields[STATE].equals("Z") || !fields[STARTED].equals(other.startedTicks);
    } catch (NoSuchFileException gone) {
      return true;
    } catch (IOException unknown) {
      return false;
    }
  }

  /** Numbers of processes mean something in one of them, and the times at which they started, too. */
  private static String namespace(String kind) throws IOException {
    return Files.readSymbolicLink(Path.of("/proc/self/ns/" + kind)).toString();
  }

  /** The name in front of these fields may hold anything. */
  private static String[] stat(long pid) throws IOException {
    String line = Files.readString(Path.of("/proc/" + pid + "/stat"));
    return line.substring(line.lastIndexOf(')') + 2).split(" ");
  }
}
