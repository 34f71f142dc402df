package org.penstock.bridge;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * What the bridge knows of an envelope: where it goes. The first eight bytes are u8 magic, u8 layer, u8 place, u8 flags,
 * i32 partition (penstock/wire/envelope.py has the rest). A row's payload is a bundle: (u32 length, envelope) again and again.
 */
final class Envelopes {
  private Envelopes() {}

  private static final byte MAGIC = (byte) 0xA7;
  private static final byte MARK = 0x20; // a flag: an epoch mark, with the epoch in the place of the ship time and no items
  private static final int HEADER = 26;

  /** Partitions of the next layer: so many from the first one on. */
  record Choice(int first, int count) {}

  /** An envelope that left a worker, on its way to a partition of the next layer: the target, or another one of the choice. */
  record Out(int target, byte[] envelope, Choice choice) {
    Out(int target, byte[] envelope) {
      this(target, envelope, null);
    }

    /** As a worker says it for an envelope of a balanced stream. */
    static Out balanced(int said, byte[] envelope) {
      Choice choice = new Choice(said & 0xFFFF, Math.max(1, said >>> 16));
      int turn = Math.floorMod(partition(envelope) - choice.first(), choice.count());
      return new Out(choice.first() + turn, envelope, choice);
    }
  }

  static List<byte[]> split(byte[] bundle) {
    return split(ByteBuffer.wrap(bundle).order(ByteOrder.LITTLE_ENDIAN));
  }

  static List<byte[]> split(ByteBuffer in) {
    List<byte[]> envelopes = new ArrayList<>(1);
    while (in.hasRemaining()) {
      byte[] envelope = new byte[in.getInt()];
      in.get(envelope);
      if (envelope.length < 8 || envelope[0] != MAGIC) {
        throw new IllegalStateException("a row holds something that is not an envelope");
      }
      envelopes.add(envelope);
    }
    return envelopes;
  }

  /** The place of the first envelope of a bundle. */
  static int firstPlace(ByteBuffer bundle) {
    return bundle.get(bundle.position() + 4 + 2) & 0xFF;
  }

  static int layer(byte[] envelope) {
    return envelope[1] & 0xFF;
  }

  static int place(byte[] envelope) {
    return envelope[2] & 0xFF;
  }

  static boolean isMark(byte[] envelope) {
    return envelope[3] == MARK;
  }

  /** The stream in the upper half, the sending replica in the lower. */
  static int channel(byte[] envelope) {
    ByteBuffer in = ByteBuffer.wrap(envelope).order(ByteOrder.LITTLE_ENDIAN);
    return (in.getShort(8) & 0xFFFF) << 16 | in.getShort(10) & 0xFFFF;
  }

  /** Of a mark. */
  static long epoch(byte[] envelope) {
    return ByteBuffer.wrap(envelope).order(ByteOrder.LITTLE_ENDIAN).getLong(12);
  }

  /** A mark for one replica. */
  static byte[] mark(int layer, int partition, int place, int stream, int sender, long epoch) {
    ByteBuffer out = ByteBuffer.allocate(HEADER).order(ByteOrder.LITTLE_ENDIAN);
    out.put(MAGIC).put((byte) layer).put((byte) place).put(MARK).putInt(partition);
    out.putShort((short) stream).putShort((short) sender).putLong(epoch);
    return out.array();
  }

  static int partition(byte[] envelope) {
    return ByteBuffer.wrap(envelope, 4, 4).order(ByteOrder.LITTLE_ENDIAN).getInt();
  }

  /**
   * One row for each target, envelopes in their order. Whatever waited together travels together, so the number of
   * rows falls by itself when the shuffle is busy, and an idle system ships each envelope alone and at once.
   */
  static List<Row> rows(List<Out> outs) {
    if (outs.size() == 1) {
      return List.of(row(outs.get(0).target(), outs));
    }
    Map<Integer, List<Out>> byTarget = new LinkedHashMap<>();
    for (Out out : outs) {
      byTarget.computeIfAbsent(out.target(), t -> new ArrayList<>()).add(out);
    }
    List<Row> rows = new ArrayList<>(byTarget.size());
    byTarget.forEach((target, group) -> rows.add(row(target, group)));
    return rows;
  }

  private static Row row(int target, List<Out> group) {
    int size = 0;
    for (Out out : group) {
      size += 4 + out.envelope().length;
    }
    ByteBuffer bundle = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    for (Out out : group) {
      bundle.putInt(out.envelope().length).put(out.envelope());
    }
    return RowFactory.create(target, bundle.array());
  }
}
