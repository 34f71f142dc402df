package org.penstock.bridge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.TreeMap;

/** What waits before one task, by channel: made when somebody asks, so that an envelope on its way costs nothing. */
final class Queue {
  private static final int STREAM = 8;
  private static final int SENDER = 10;
  private static final int ITEMS = 20;
  private static final int HEADER = 26;

  private static final class Channel {
    int envelopes;
    long items;
    long bytes;
    long oldestNs;
  }

  private final Map<Integer, Channel> channels = new TreeMap<>();
  private final int place;

  /** Of the task at this place of its unit. */
  Queue(int place) {
    this.place = place;
  }

  /** Every envelope of a bundle that is for the task. */
  void addBundle(ByteBuffer bundle, long arrivedNs) {
    int at = 0;
    while (at < bundle.limit()) {
      int length = bundle.getInt(at);
      add(bundle, at + 4, length, arrivedNs);
      at += 4 + length;
    }
  }

  void add(byte[] envelope, long arrivedNs) {
    add(ByteBuffer.wrap(envelope).order(ByteOrder.LITTLE_ENDIAN), 0, envelope.length, arrivedNs);
  }

  private void add(ByteBuffer in, int at, int length, long arrivedNs) {
    if (length < HEADER || (in.get(at + 2) & 0xFF) != place || in.getInt(at + ITEMS) == 0) {
      return;
    }
    int stream = in.getShort(at + STREAM) & 0xFFFF;
    int sender = in.getShort(at + SENDER) & 0xFFFF;
    Channel channel = channels.computeIfAbsent(stream << 16 | sender, unknown -> new Channel());
    if (channel.envelopes++ == 0 || arrivedNs - channel.oldestNs < 0) {
      channel.oldestNs = arrivedNs;
    }
    channel.items += in.getInt(at + ITEMS) & 0xFFFFFFFFL;
    channel.bytes += length;
  }

  /** An array for each channel in which something waits: stream, sender, envelopes, items, bytes, age of the oldest in ms. */
  String json(long nowNs) {
    ArrayNode all = Json.MAPPER.createArrayNode();
    channels.forEach((ends, channel) -> {
      ArrayNode one = all.addArray().add(ends >>> 16).add(ends & 0xFFFF);
      one.add(channel.envelopes).add(channel.items).add(channel.bytes);
      one.add(Math.max(0, nowNs - channel.oldestNs) / 1e6);
    });
    return Json.text(all);
  }
}
