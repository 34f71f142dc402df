package org.penstock.bridge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The epoch marks before one task. Its channels are all that may ever send to it, (stream, sending replica). Where state depends
 * on the task, what follows a mark on one channel is stored until the mark is there on all, and then comes in its order; reading
 * never stops for it. When the store is full all pass, and the epoch is void here; not so if keys change hands with the epoch:
 * what came before their state could not be counted, so it says that it is full, and goes on storing. Elsewhere marks are only counted,
 * but for the one with which keys of this very task change hands.
 * A mark stands for all smaller ones. It calls nobody; tests/epochs/model/stage.py has the same rules.
 */
public final class Alignment {
  /** The mark of a channel that has ended: it stands for all that will ever be. */
  public static final long LAST = Long.MAX_VALUE;

  static final long LIMIT_BYTES = 8 << 20;

  /** What is to be given to the task: envelopes that arrived at that time, or (an epoch above 0) a mark, valid or not. */
  public record Step(List<byte[]> envelopes, long arrivedNs, long epoch, boolean valid) {}

  private record Stored(byte[] envelope, long arrivedNs) {}

  private final boolean exact;
  private final long limitBytes;
  private final Map<Integer, Long> marked = new HashMap<>(); // by channel
  private final Set<Long> passing = new HashSet<>(); // epochs that are void here
  private List<Stored> store = new ArrayList<>();
  private long storedBytes;
  private long epoch;
  private long moving; // the epoch with which keys change hands
  private boolean moved; // whether keys of this task do
  private boolean full;
  private long toldFull; // the last epoch for which that was said
  private List<Step> steps = new ArrayList<>();

  /** `epoch` is the last one before; channels are numbers of `Envelopes.channel`. */
  public Alignment(boolean exact, long epoch, List<Integer> channels, long limitBytes) {
    this.exact = exact;
    this.epoch = epoch;
    this.limitBytes = limitBytes;
    channels.forEach(channel -> marked.put(channel, epoch));
  }

  /** What is to be done now that these have arrived, in order. */
  public List<Step> arrive(List<byte[]> envelopes, long arrivedNs) {
    for (byte[] envelope : envelopes) {
      arrive(envelope, arrivedNs);
    }
    List<Step> all = steps;
    steps = new ArrayList<>();
    return all;
  }

  /** Keys change hands with this epoch, perhaps some of this task; known before any mark of it can come. */
  public void moves(long epoch, boolean here) {
    moving = epoch;
    moved = here;
  }

  /** Whether the store has become full since the last call, and nothing may pass. */
  public boolean takeFull() {
    boolean was = full;
    full = false;
    return was;
  }

  /** What waits for a mark. */
  public long storedBytes() {
    return storedBytes;
  }

  private void arrive(byte[] envelope, long arrivedNs) {
    int channel = Envelopes.channel(envelope);
    Long last = marked.get(channel);
    if (last == null) {
      throw new IllegalStateException(
          "an envelope came by a channel that nobody knows: stream " + (channel >>> 16) + ", replica " + (channel & 0xFFFF));
    }
    boolean isMark = Envelopes.isMark(envelope);
    while (blocks(last) && !isMark && storedBytes + envelope.length > limitBytes) {
      if (last == moving) {
        full |= toldFull != last;
        toldFull = last;
        break;
      }
      passing.add(last);
      release();
      last = marked.get(channel); // a later mark of it may have been stored
    }
    if (blocks(last)) {
      store.add(new Stored(envelope, arrivedNs));
      storedBytes += envelope.length;
    } else if (isMark) {
      marked.put(channel, Math.max(last, Envelopes.epoch(envelope)));
      complete();
    } else {
      pass(envelope, arrivedNs);
    }
  }

  /** Whether what comes by a channel with that mark follows one that others lack. */
  private boolean blocks(long last) {
    return (exact || (moved && last == moving)) && last > epoch && !passing.contains(last);
  }

  private void pass(byte[] envelope, long arrivedNs) {
    Step before = steps.isEmpty() ? null : steps.get(steps.size() - 1);
    if (before == null || before.epoch() > 0 || before.arrivedNs() != arrivedNs) {
      before = new Step(new ArrayList<>(), arrivedNs, 0, true);
      steps.add(before);
    }
    before.envelopes().add(envelope);
  }

  private void complete() {
    long reached = LAST;
    for (long last : marked.values()) {
      reached = Math.min(reached, last);
    }
    if (reached <= epoch) {
      return;
    }
    epoch = reached;
    if (reached != LAST) { // else the input is over, and the task hears of that
      steps.add(new Step(List.of(), 0, reached, !passing.contains(reached)));
    }
    long past = reached;
    passing.removeIf(done -> done <= past);
    release();
  }

  private void release() {
    List<Stored> released = store;
    store = new ArrayList<>();
    storedBytes = 0;
    for (Stored one : released) {
      arrive(one.envelope(), one.arrivedNs());
    }
  }
}
