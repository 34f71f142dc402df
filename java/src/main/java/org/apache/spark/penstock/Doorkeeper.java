package org.apache.spark.penstock;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.AttributeKey;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServerBootstrap;
import org.apache.spark.network.util.TransportFrameDecoder;

/**
 * In front of Spark's authentication: whoever does anything but prove that it knows the secret, soon and in few bytes, is cut
 * off and counted. Spark by itself would answer, log and keep the connection.
 */
final class Doorkeeper implements TransportServerBootstrap {
  private static final AttributeKey<AtomicInteger> DOOR = AttributeKey.valueOf("penstock.door");
  private static final String LIMIT = "penstockLimit";
  private static final String TOO_EARLY = "more than one message at a time before it proved who it is";
  private static final int MOST_BYTES = 1 << 16;
  private static final int LENGTH_BYTES = 8;
  private static final long MOST_MS = TimeUnit.SECONDS.toMillis(20);
  private static final int MOST_AT_THE_DOOR = 128;

  private final AtomicInteger atTheDoor = new AtomicInteger();

  /** Closes a connection because of what came over it. */
  static void refuse(Channel connection, String why) {
    if (connection.isOpen()) {
      Refusals.note(connection.remoteAddress(), why);
      connection.close();
    }
  }

  /** Whoever is called has to prove who it is, too. */
  static void atCalled(Channel connection) {
    connection.pipeline().addBefore(TransportFrameDecoder.HANDLER_NAME, LIMIT, new Limit());
  }

  /** In the connection's thread: it has proved who it is, and from now on more than a few bytes may come. */
  static void letIn(Channel connection) {
    leaveDoor(connection);
    Limit limit = (Limit) connection.pipeline().remove(LIMIT);
    if (limit.isInsideMessage()) {
      refuse(connection, TOO_EARLY);
      throw new Violation(TOO_EARLY);
    }
  }

  private static void leaveDoor(Channel connection) {
    AtomicInteger door = connection.attr(DOOR).getAndSet(null);
    if (door != null) {
      door.decrementAndGet();
    }
  }

  /** Whether it has called and was not let in. */
  static boolean isAtTheDoor(Channel connection) {
    return connection.attr(DOOR).get() != null;
  }

  @Override
  public RpcHandler doBootstrap(Channel connection, RpcHandler authentication) {
    connection.pipeline().addLast(LIMIT, new Limit());
    connection.attr(DOOR).set(atTheDoor);
    if (atTheDoor.incrementAndGet() > MOST_AT_THE_DOOR) {
      refuse(connection, "too many have not proved who they are");
    }
    connection.closeFuture().addListener(closed -> leaveDoor(connection));
    connection.eventLoop().schedule(
        () -> {
          if (isAtTheDoor(connection)) {
            refuse(connection, "it did not prove in time who it is");
          }
        },
        MOST_MS,
        TimeUnit.MILLISECONDS);
    return new Door(connection, authentication);
  }

  /**
   * Looks at what comes before anything is decoded: little, and one message at a time, each of which is answered. Whoever is in
   * between could otherwise put something behind the last word of a proof, in the clear, and it would be taken for what
   * comes encrypted after it.
   */
  private static final class Limit extends ChannelInboundHandlerAdapter {
    private int bytes;
    private long length; // of the present message, as far as it is known: it stands in its first bytes, and counts them
    private long cameBytes; // of it

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      ByteBuf in = (ByteBuf) message;
      bytes += in.readableBytes();
      if (bytes > MOST_BYTES) {
        in.release();
        refuse(context.channel(), "too much before it proved who it is");
      } else if (goesBeyond(in)) {
        in.release();
        refuse(context.channel(), TOO_EARLY);
      } else {
        context.fireChannelRead(in);
      }
    }

    private boolean goesBeyond(ByteBuf in) {
      int at = in.readerIndex();
      for (; cameBytes < LENGTH_BYTES && at < in.writerIndex(); cameBytes++) {
        length = length << Byte.SIZE | in.getUnsignedByte(at++);
      }
      cameBytes += in.writerIndex() - at;
      boolean beyond = cameBytes >= LENGTH_BYTES && cameBytes > length;
      if (cameBytes >= LENGTH_BYTES && cameBytes == length) {
        cameBytes = 0;
        length = 0;
      }
      return beyond;
    }

    boolean isInsideMessage() {
      return cameBytes > 0;
    }
  }

  private static final class Door extends RpcHandler {
    private final Channel connection;
    private final RpcHandler authentication;

    Door(Channel connection, RpcHandler authentication) {
      this.connection = connection;
      this.authentication = authentication;
    }

    @Override
    public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
      try {
        authentication.receive(client, message, new RpcResponseCallback() {
          @Override
          public void onSuccess(ByteBuffer answer) {
            callback.onSuccess(answer);
          }

          @Override
          public void onFailure(Throwable why) {
            refuse(connection, "it does not know the secret");
          }
        });
      } catch (RuntimeException wrong) {
        refuse(connection, "it does not know the secret");
      }
    }

    @Override
    public void receive(TransportClient client, ByteBuffer message) {
      if (isAtTheDoor(connection)) {
        refuse(connection, "a message before it proved who it is");
      } else {
        authentication.receive(client, message);
      }
    }

    @Override
    public StreamCallbackWithID receiveStream(
        TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
      refuse(connection, "a stream, which nobody asked for");
      throw new UnsupportedOperationException();
    }

    @Override
    public MergedBlockMetaReqHandler getMergedBlockMetaReqHandler() {
      return (client, request, callback) -> refuse(connection, "a question about blocks");
    }

    @Override
    public StreamManager getStreamManager() {
      return new StreamManager() {
        @Override
        public void checkAuthorization(TransportClient client, long stream) {
          refuse(connection, "a question for blocks");
          throw new SecurityException();
        }

        @Override
        public void checkAuthorization(TransportClient client, String stream) {
          refuse(connection, "a question for a stream");
          throw new SecurityException();
        }

        @Override
        public ManagedBuffer getChunk(long stream, int index) {
          throw new UnsupportedOperationException();
        }
      };
    }

    @Override
    public void channelActive(TransportClient client) {
      authentication.channelActive(client);
    }

    @Override
    public void channelInactive(TransportClient client) {
      authentication.channelInactive(client);
    }

    @Override
    public void exceptionCaught(Throwable why, TransportClient client) {
      authentication.exceptionCaught(why, client);
    }
  }
}
