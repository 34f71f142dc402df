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

/**
 * In front of Spark's authentication: whoever does anything but prove that it knows the secret, soon and in few bytes, is cut
 * off and counted. Spark by itself would answer, log and keep the connection.
 */
final class Doorkeeper implements TransportServerBootstrap {
  private static final AttributeKey<AtomicInteger> DOOR = AttributeKey.valueOf("penstock.door");
  private static final String LIMIT = "penstockLimit";
  private static final int MOST_BYTES = 1 << 16;
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

  /** From now on more than a few bytes may come. */
  static void letIn(Channel connection) {
    leaveDoor(connection);
    connection.pipeline().remove(LIMIT);
  }

  private static void leaveDoor(Channel connection) {
    AtomicInteger door = connection.attr(DOOR).getAndSet(null);
    if (door != null) {
      door.decrementAndGet();
    }
  }

  private static boolean isInside(Channel connection) {
    return connection.attr(DOOR).get() == null;
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
          if (!isInside(connection)) {
            refuse(connection, "it did not prove in time who it is");
          }
        },
        MOST_MS,
        TimeUnit.MILLISECONDS);
    return new Door(connection, authentication);
  }

  /** Counts what comes before anything is decoded. */
  private static final class Limit extends ChannelInboundHandlerAdapter {
    private int bytes;

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      bytes += ((ByteBuf) message).readableBytes();
      if (bytes > MOST_BYTES) {
        ((ByteBuf) message).release();
        refuse(context.channel(), "too much before it proved who it is");
      } else {
        context.fireChannelRead(message);
      }
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
      if (isInside(connection)) {
        authentication.receive(client, message);
      } else {
        refuse(connection, "a message before it proved who it is");
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
