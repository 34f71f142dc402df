package org.penstock.bridge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntToLongFunction;

/**
 * Where the envelopes of balanced streams go: to whose turn it is, unless more waits there than at the replica with the
 * shortest queue, by more than some envelopes of that size. So little differences, which come and go with every
 * acknowledgement, change nothing, and what has piled up somewhere is let be until it is worked off.
 */
final class Balance {
  private static final int SLACK_ENVELOPES = 16;
  private static final int SLACK_BYTES = 1 << 15; // for large ones, of which two may differ all the same
  private static final int LEAST_ENVELOPES = 2;

  private Balance() {}

  static boolean isNeeded(List<Envelopes.Out> outs) {
    for (Envelopes.Out out : outs) {
      if (out.choice() != null) {
        return true;
      }
    }
    return false;
  }

  /** The envelopes with their targets; `loads` tells how many bytes wait for a partition. */
  static List<Envelopes.Out> settled(List<Envelopes.Out> outs, IntToLongFunction loads) {
    Map<Integer, Long> given = new HashMap<>(); // what is settled here is not in any queue yet
    List<Envelopes.Out> settled = new ArrayList<>(outs.size());
    for (Envelopes.Out out : outs) {
      int target = out.choice() == null ? out.target() : chosen(out, loads, given);
      given.merge(target, (long) out.envelope().length, Long::sum);
      settled.add(new Envelopes.Out(target, out.envelope()));
    }
    return settled;
  }

  private static int chosen(Envelopes.Out out, IntToLongFunction loads, Map<Integer, Long> given) {
    Envelopes.Choice choice = out.choice();
    long ofTurn = load(out.target(), loads, given);
    long least = ofTurn;
    int shortest = out.target();
    for (int next = 1; next < choice.count(); next++) { // of equals the one whose turn comes first
      int partition = choice.first() + (out.target() - choice.first() + next) % choice.count();
      long load = load(partition, loads, given);
      if (load < least) {
        least = load;
        shortest = partition;
      }
    }
    return ofTurn - least > slackBytes(out.envelope().length) ? shortest : out.target();
  }

  private static long load(int partition, IntToLongFunction loads, Map<Integer, Long> given) {
    return loads.applyAsLong(partition) + given.getOrDefault(partition, 0L);
  }

  private static long slackBytes(int size) {
    return Math.max(Math.min((long) SLACK_ENVELOPES * size, SLACK_BYTES), (long) LEAST_ENVELOPES * size);
  }
}
