package org.apache.spark.penstock;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.spark.network.protocol.Message;

/**
 * What goes over a connection between executors: kind, channel, and what the kind wants. The reader of a channel numbers
 * it. Each frame is one message of Spark's transport that wants no answer, in one buffer.
 */
final class Frames {
  // From the one who reads the channel.
  static final byte OPEN = 1; // shuffle, attempt of the writing task, partition of the reader, room in bytes
  static final byte CREDIT = 2; // bytes that were read
  static final byte GRANT = 3; // bytes of the large row that may come
  static final byte ENDED = 4; // all was received
  static final byte GONE = 5; // the reader ended before the writer
  static final byte LOAD = 6; // bytes before the reader, from all its writers, and bytes received over this channel
  // From the one who writes to it.
  static final byte ROW = 11; // sequence, fields, bytes of the row, the first of them
  static final byte MORE = 12; // sequence, more bytes of the row
  static final byte ASK = 13; // bytes of a large row
  static final byte END = 14; // sequence
  static final byte BROKEN = 15; // the writer failed
  static final byte WATCH = 16; // from now on the writer wants to know what is before the reader

  static final int FRAGMENT_BYTES = 1 << 17; // a large row lets others pass
  private static final int SPARKS = 8 + 1 + 4; // length of all, kind of message, length of its body
  private static final int KIND_AND_CHANNEL = 1 + 4;
  private static final int GREETING = 0x50454E31;
  private static final int LONGEST_NAME = 256;

  private Frames() {}

  static ByteBuf frame(ByteBufAllocator allocator, byte kind, int channel, int bytes) {
    int body = KIND_AND_CHANNEL + bytes;
    ByteBuf frame = allocator.buffer(SPARKS + body);
    frame.writeLong(SPARKS + body);
    Message.Type.OneWayMessage.encode(frame);
    frame.writeInt(body);
    return frame.writeByte(kind).writeInt(channel);
  }

  /** The first words of whoever connects; `insists` if a connection that the other side may still see is gone. */
  record Greeting(String name, boolean insists) {
    ByteBuffer encoded() {
      byte[] letters = name.getBytes(StandardCharsets.UTF_8);
      ByteBuffer out = ByteBuffer.allocate(4 + 1 + letters.length);
      return out.putInt(GREETING).put((byte) (insists ? 1 : 0)).put(letters).flip();
    }

    static Greeting decoded(ByteBuffer in) {
      if (in.remaining() <= 5 || in.remaining() > 5 + LONGEST_NAME || in.getInt() != GREETING) {
        throw new Violation("it does not greet");
      }
      boolean insists = in.get() == 1;
      byte[] letters = new byte[in.remaining()];
      in.get(letters);
      return new Greeting(new String(letters, StandardCharsets.UTF_8), insists);
    }
  }
}
