package org.apache.spark.penstock;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelPromise;
import io.netty.handler.flush.FlushConsolidationHandler;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.penstock.bridge.Inbox;

/** One connection to another executor, and the channels on it in both directions. It outlives batches. */
final class Link {
  private static final long TOLD_EVERY_MS = 20;
  private static final int FLUSHED_AFTER = 64; // messages: a system call writes many of them when many wait

  private final Links links;
  private final String peer;
  private final boolean theyCalled;
  private final Channel connection;
  private final Map<Integer, Incoming> incoming = new ConcurrentHashMap<>();
  private final Map<Integer, Outgoing> outgoing = new ConcurrentHashMap<>();
  private final AtomicInteger lastOpened; // who called has odd ones, the other even: what one says is nothing that it may hear
  private final Set<Incoming> watched = new HashSet<>(); // of the connection's thread
  private ScheduledFuture<?> telling;
  private int lastOfPeer;
  private volatile boolean lost;

  Link(Links links, String peer, boolean theyCalled, Channel connection) {
    this.links = links;
    this.peer = peer;
    this.theyCalled = theyCalled;
    this.connection = connection;
    this.lastOpened = new AtomicInteger(theyCalled ? 0 : -1);
    this.lastOfPeer = theyCalled ? -1 : 0;
    connection.pipeline().addLast(new FlushConsolidationHandler(FLUSHED_AFTER, true));
  }

  String peer() {
    return peer;
  }

  boolean isOpen() {
    return !lost && connection.isOpen();
  }

  /** Of both directions: those whose tasks have not ended. */
  public int channels() {
    return incoming.size() + outgoing.size();
  }

  boolean theyCalled() {
    return theyCalled;
  }

  /** Asks a writer over there for its rows. */
  public Incoming open(
      int shuffle, long map, int reader, Inbox.Channel<Object> inbox, int roomBytes, TaskWatch watch) {
    Incoming channel;
    synchronized (lastOpened) { // readers of several tasks open channels, which must arrive in their order
      int id = lastOpened.addAndGet(2);
      channel = new Incoming(this, id, shuffle, inbox, roomBytes, links.largeRows(), watch);
      incoming.put(id, channel);
      ByteBuf frame = frame(Frames.OPEN, id, 4 + 8 + 4 + 4);
      send(frame.writeInt(shuffle).writeLong(map).writeInt(reader).writeInt(roomBytes));
    }
    if (lost) {
      channel.fail(lostWords());
    }
    return channel;
  }

  void receive(ByteBuffer frame) {
    try {
      byte kind = frame.get();
      int id = frame.getInt();
      if (kind == Frames.OPEN) {
        opened(id, frame.getInt(), frame.getLong(), frame.getInt(), frame.getInt());
      } else if (kind > Frames.OPEN && kind <= Frames.LOAD) {
        Outgoing channel = outgoing.get(id);
        if (isKnown(channel, id, lastOfPeer, frame)) {
          channel.receive(kind, frame);
        }
      } else if (kind >= Frames.ROW && kind <= Frames.WATCH) {
        Incoming channel = incoming.get(id);
        if (isKnown(channel, id, lastOpened.get(), frame)) {
          channel.receive(kind, frame);
        }
      } else {
        throw new Violation("a message of unknown kind " + kind);
      }
      if (frame.hasRemaining()) {
        throw new Violation("a message of kind " + kind + " that is too long");
      }
    } catch (BufferUnderflowException cut) {
      throw new Violation("a message that is too short");
    }
  }

  /** Messages may still be under way to a channel that is over; to one that never was there are none. */
  private static boolean isKnown(Object channel, int id, int last, ByteBuffer frame) {
    if (id <= 0 || id > last || (last - id) % 2 != 0) {
      throw new Violation("a message for channel " + id + ", which was never opened");
    }
    if (channel == null) {
      frame.position(frame.limit());
    }
    return channel != null;
  }

  private void opened(int id, int shuffle, long map, int reader, int roomBytes) {
    if (id != lastOfPeer + 2 || roomBytes <= 0) {
      throw new Violation("channel " + id + " opened where " + (lastOfPeer + 2) + " is next");
    }
    lastOfPeer = id;
    Outlet outlet = links.outlet(shuffle, map, reader);
    if (outlet == null) { // its task is over
      send(frame(Frames.BROKEN, id, 0));
      return;
    }
    Outgoing channel = new Outgoing(this, id, roomBytes, outlet.sender());
    outgoing.put(id, channel);
    outlet.attach(channel);
  }

  void forget(Incoming channel) {
    incoming.remove(channel.id(), channel);
  }

  void forget(Outgoing channel) {
    outgoing.remove(channel.id(), channel);
  }

  /** In the connection's thread: the writer of a channel wants to know what is before its reader. */
  void watch(Incoming channel) {
    watched.add(channel);
    if (telling == null) {
      telling = connection.eventLoop().scheduleAtFixedRate(
          this::tellLoads, TOLD_EVERY_MS, TOLD_EVERY_MS, TimeUnit.MILLISECONDS);
    }
  }

  private void tellLoads() {
    watched.removeIf(channel -> incoming.get(channel.id()) != channel);
    watched.forEach(Incoming::tellLoad);
    if (watched.isEmpty()) {
      telling.cancel(false);
      telling = null;
    }
  }

  ByteBuf frame(byte kind, int channel, int bytes) {
    return Frames.frame(connection.alloc(), kind, channel, bytes);
  }

  /**
   * Messages leave in the order of the calls, whichever threads they come from: those of the connection's own thread queue up
   * like all others, which Netty by itself would let pass.
   */
  ChannelFuture send(ByteBuf frame) {
    ChannelPromise sent = connection.newPromise();
    sent.addListener(ChannelFutureListener.CLOSE_ON_FAILURE);
    if (connection.eventLoop().inEventLoop()) {
      connection.eventLoop().execute(() -> connection.writeAndFlush(frame, sent));
    } else {
      connection.writeAndFlush(frame, sent);
    }
    return sent;
  }

  /** Whether so much waits to be sent that whoever sends should wait. */
  boolean isCongested() {
    return !connection.isWritable() && !lost;
  }

  private String lostWords() {
    return "the connection to executor " + peer + " is lost";
  }

  void close() {
    connection.close();
  }

  /** The connection is gone: nobody on it can go on. */
  void lost() {
    lost = true;
    incoming.values().forEach(channel -> channel.fail(lostWords()));
    outgoing.values().forEach(channel -> channel.fail(lostWords()));
    incoming.clear();
    outgoing.clear();
  }
}
