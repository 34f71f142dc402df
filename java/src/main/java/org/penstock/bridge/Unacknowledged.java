package org.penstock.bridge;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The envelopes a worker was given and has not acknowledged. When it dies they are given to its successor, which goes
 * carefully: it names each item before it touches it, so that an item that kills is known by the second time, and what was
 * done before it is not done again.
 */
public final class Unacknowledged {
  private static final long LIMIT_BYTES = 8 << 20;
  private static final long LONG_LIFE_NS = 10_000_000_000L;
  static final int DEATHS_ALLOWED = 3;

  private static final class Entry {
    final long sequence;
    final long arrivedNs;
    final byte[] envelope; // nothing in the place of a mark
    final long epoch; // of a mark, else 0
    final String switches; // that come with a mark
    final Map<Integer, byte[]> verdicts = new TreeMap<>(); // items that are put aside, and why
    int first; // all items before it are done

    Entry(long sequence, long arrivedNs, byte[] envelope, long epoch, String switches) {
      this.sequence = sequence;
      this.arrivedNs = arrivedNs;
      this.envelope = envelope;
      this.epoch = epoch;
      this.switches = switches;
    }
  }

  private record Place(long sequence, int item) {}

  private final Deque<Entry> open = new ArrayDeque<>();
  private final Map<Place, Integer> deaths = new HashMap<>();
  private long lastSequence;
  private volatile long bytes; // changed by whoever has the lock
  private volatile int envelopes; // the same; marks are among them
  private Place at;
  private int deathsWithoutProgress;
  private boolean released;

  /** Waits while too much is unacknowledged. */
  synchronized void awaitRoom() throws InterruptedException {
    while (bytes >= LIMIT_BYTES && !released) {
      wait();
    }
  }

  /** Notes an envelope that comes now. */
  public ByteBuffer give(byte[] envelope) {
    return give(envelope, System.nanoTime());
  }

  /** Notes an envelope and returns the frame that carries it. */
  synchronized ByteBuffer give(byte[] envelope, long arrivedNs) {
    Entry entry = new Entry(++lastSequence, arrivedNs, envelope, 0, "");
    add(entry);
    return frame(entry, false);
  }

  /** Notes a mark, which has its place among the envelopes, and returns its frame; `switches` are as in `Wire.MARK`. */
  public synchronized ByteBuffer giveMark(long epoch, String switches) {
    Entry entry = new Entry(++lastSequence, 0, new byte[0], epoch, switches);
    add(entry);
    return Wire.mark(entry.sequence, epoch, false, 0, switches);
  }

  private void add(Entry entry) {
    open.add(entry);
    bytes += entry.envelope.length;
    envelopes++;
  }

  /** Everything up to this sequence is done with; returns whether that was news. */
  public synchronized boolean acknowledge(long sequence) {
    boolean freed = false;
    while (!open.isEmpty() && open.peek().sequence <= sequence) {
      bytes -= open.poll().envelope.length;
      envelopes--;
      freed = true;
    }
    if (at != null && at.sequence() <= sequence) {
      at = null; // what the worker does after it has nothing to do with that item
    }
    if (freed) {
      deathsWithoutProgress = 0;
      notifyAll();
    }
    return freed;
  }

  /** The worker got something done, though nothing that it was given: a source has shipped what it read. */
  synchronized void progressed() {
    deathsWithoutProgress = 0;
  }

  /** The worker goes carefully and has come to this item: everything before it is shipped. */
  public synchronized void at(long sequence, int item) {
    at = new Place(sequence, item);
    Entry entry = find(sequence);
    if (entry != null) {
      entry.first = item;
    }
  }

  private Entry find(long sequence) {
    for (Entry entry : open) {
      if (entry.sequence == sequence) {
        return entry;
      }
    }
    return null;
  }

  /** Adds what the worker was given and has not taken: all behind this sequence. */
  synchronized void waiting(long taken, Queue queue) {
    for (Iterator<Entry> newest = open.descendingIterator(); newest.hasNext(); ) {
      Entry entry = newest.next();
      if (entry.sequence <= taken) {
        return;
      }
      queue.add(entry.envelope, entry.arrivedNs); // which leaves marks out
    }
  }

  long bytes() {
    return bytes;
  }

  int envelopes() {
    return envelopes;
  }

  public synchronized int size() {
    return open.size();
  }

  /** Notes that the worker died after so long a life; false when it died too often without getting anything done. */
  public synchronized boolean died(long livedNs, Epitaph epitaph) {
    Place was = at;
    at = null;
    if (epitaph.item() >= 0) {
      condemn(new Place(epitaph.sequence(), epitaph.item()), epitaph.verdict(epitaph.how()));
      return true;
    }
    if (livedNs > LONG_LIFE_NS) {
      deathsWithoutProgress = 0;
    }
    if (was == null) {
      return ++deathsWithoutProgress < DEATHS_ALLOWED;
    }
    // The first death was blind: the item was among the unacknowledged ones, and that counts.
    int known = deaths.merge(was, 1, Integer::sum);
    if (known + 1 >= DEATHS_ALLOWED) {
      condemn(was, epitaph.verdict("this item has killed its worker process three times: " + epitaph.how()));
    }
    return true;
  }

  private void condemn(Place place, String verdict) {
    Entry entry = find(place.sequence());
    if (entry != null) {
      entry.verdicts.put(place.item(), verdict.getBytes(StandardCharsets.UTF_8));
    }
  }

  /** All unacknowledged envelopes again, for the successor of a dead worker. */
  public synchronized List<ByteBuffer> again() {
    List<ByteBuffer> frames = new ArrayList<>(open.size());
    for (Entry entry : open) {
      frames.add(frame(entry, true));
    }
    return frames;
  }

  /** Lets whoever waits for room go: the task is over. */
  synchronized void release() {
    released = true;
    notifyAll();
  }

  private static ByteBuffer frame(Entry entry, boolean careful) {
    if (entry.epoch > 0) {
      return Wire.mark(entry.sequence, entry.epoch, false, 0, entry.switches);
    }
    int body = 8 + 8 + 1 + 4 + 2 + entry.envelope.length;
    for (byte[] verdict : entry.verdicts.values()) {
      body += 8 + verdict.length;
    }
    ByteBuffer frame = ByteBuffer.allocate(Wire.HEADER + body).order(ByteOrder.LITTLE_ENDIAN);
    frame.putInt(1 + body).put(Wire.DATA).putLong(entry.sequence).putLong(entry.arrivedNs);
    frame.put((byte) (careful ? 1 : 0)).putInt(entry.first).putShort((short) entry.verdicts.size());
    entry.verdicts.forEach((item, verdict) -> frame.putInt(item).putInt(verdict.length).put(verdict));
    return frame.put(entry.envelope).flip();
  }
}
