package org.penstock.bridge;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ReadableByteChannel;
import java.nio.charset.StandardCharsets;

/**
 * The frames between a bridge and a Python worker: u32 length (of what follows), u8 kind, body; little endian.
 * penstock/wire/frames.py is the other side; a contract test compares the two.
 */
public final class Wire {
  private Wire() {}

  /** Bridge to worker, data channel. */
  public static final byte START = 1; // JSON: what to be in this batch
  public static final byte DATA = 2; // i64 sequence, i64 arrival ns, u8 careful, u32 first, u16 verdicts, verdict..., envelope
  // A verdict on an item that is put aside: u32 item, u32 length, JSON.
  public static final byte END = 3; // u8 last: flush everything and answer ENDED
  public static final byte MARK = 4; // i64 sequence, i64 epoch, u8 quiet, i64 committed: write it all down and answer MARKED
  // JSON follows if keys change hands with the mark: the switches that say so.
  public static final byte GO = 8; // i64 epoch: it is over, a source that was quiet reads on
  public static final byte WAIT = 9; // i64 epoch: a source is to be quiet until it is over

  /** Bridge to worker, control channel. */
  public static final byte SWITCHES = 5; // JSON
  public static final byte JOINED = 6; // the workers of chained tasks have ended
  public static final byte LINK = 7; // JSON: the latest exchange of times with the driver, and the lease
  public static final byte BEHIND = 10; // u8: whether somebody it sends to has much before it

  /** Worker to bridge, data channel. */
  public static final byte OUT = 16; // i64 acknowledged, i32 target, u8 place (255: another layer), envelope
  // At place 254 the target is a choice, u16 first partition and u16 how many; the envelope says whose turn it is.
  public static final byte ACK = 17; // i64 acknowledged
  public static final byte ENDED = 18; // JSON: final report, and the offset of a source
  public static final byte FAILED = 19; // JSON: error of the user's code under on_error="fail"
  public static final byte AT = 20; // i64 sequence, u32 item: all before it is shipped, now comes this one (careful mode only)

  public static final byte MARKED = 24; // i64 acknowledged, i64 epoch, JSON: all before the mark is shipped and written down

  public static final byte FULL = 25; // i64 epoch: too much waits for state that comes when it is over

  public static final byte JOIN = 22; // JSON: all tasks that this worker runs itself besides its own; end their workers, then JOINED

  /** Worker to bridge, control channel. */
  public static final byte REPORT = 21; // i64 sequence of the input that was taken last, JSON; answered with LINK
  public static final byte ALIVE = 23; // nothing to report, answered with LINK

  static final int REMOTE = 255;
  static final int BALANCED = 254;
  static final int HEADER = 5;
  private static final int LIMIT = 1 << 30;

  /** A frame as read: kind and body (position 0 to limit). */
  record Frame(byte kind, ByteBuffer body) {}

  static ByteBuffer frame(byte kind, byte[] body) {
    ByteBuffer frame = ByteBuffer.allocate(HEADER + body.length).order(ByteOrder.LITTLE_ENDIAN);
    frame.putInt(1 + body.length).put(kind).put(body);
    return frame.flip();
  }

  static ByteBuffer mark(long sequence, long epoch, boolean quiet, long committed, String switches) {
    byte[] json = switches.getBytes(StandardCharsets.UTF_8);
    ByteBuffer body = ByteBuffer.allocate(25 + json.length).order(ByteOrder.LITTLE_ENDIAN);
    body.putLong(sequence).putLong(epoch).put((byte) (quiet ? 1 : 0)).putLong(committed).put(json);
    return frame(MARK, body.array());
  }

  static ByteBuffer ofEpoch(byte kind, long epoch) {
    return frame(kind, ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, epoch).array());
  }

  /** Reads whole frames from a blocking channel through one buffer. */
  static final class Reader {
    private final ReadableByteChannel channel;
    private ByteBuffer buffer = ByteBuffer.allocate(1 << 16).order(ByteOrder.LITTLE_ENDIAN).limit(0);

    Reader(ReadableByteChannel channel) {
      this.channel = channel;
    }

    /** The next frame, or null at a clean end of the stream. The body is valid until the next call. */
    Frame next() throws IOException {
      if (!fill(4)) {
        return null;
      }
      int length = buffer.getInt(buffer.position());
      if (length < 1 || length > LIMIT) {
        throw new IOException("a worker sent a frame of " + length + " bytes");
      }
      if (!fill(4 + length)) {
        throw new EOFException("a worker ended in the middle of a frame");
      }
      int start = buffer.position();
      byte kind = buffer.get(start + 4);
      ByteBuffer body = buffer.slice(start + HEADER, length - 1).order(ByteOrder.LITTLE_ENDIAN);
      buffer.position(start + 4 + length);
      return new Frame(kind, body);
    }

    /** Whether a whole frame is in the buffer. */
    boolean ready() {
      return buffer.remaining() >= 4 && buffer.remaining() >= 4 + buffer.getInt(buffer.position());
    }

    private boolean fill(int need) throws IOException {
      if (buffer.remaining() >= need) {
        return true;
      }
      if (buffer.capacity() - buffer.position() < need) {
        ByteBuffer room = buffer.capacity() >= need ? buffer : ByteBuffer.allocate(Integer.highestOneBit(need) * 2);
        byte[] rest = new byte[buffer.remaining()];
        buffer.get(rest);
        buffer = room.clear().order(ByteOrder.LITTLE_ENDIAN).put(rest).flip();
      }
      while (buffer.remaining() < need) {
        int start = buffer.position();
        int end = buffer.limit();
        buffer.limit(buffer.capacity()).position(end);
        int read = channel.read(buffer);
        buffer.limit(buffer.position()).position(start);
        if (read < 0) {
          return false;
        }
      }
      return true;
    }
  }
}
