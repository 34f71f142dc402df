package org.penstock.bridge;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Lets workers use the files of a checkpoint that is on one of Hadoop's file systems, which only this JVM can reach. They ask over
 * a socket in their parent's private directory: a byte that says what, the length of a name (u32) and the name, for CREATE and
 * UPLOAD a length (i64) and as many bytes of content. The answer is a byte, a length (i64) and as many bytes.
 * CREATE is answered when the file is there, UPLOAD as soon as it will be, or never: see Uploads.
 */
final class StoreServer {
  static final String SOCKET = "store.sock";
  private static final int NAMES = 1;
  private static final int READ = 2;
  private static final int CREATE = 3;
  private static final int DELETE = 4;
  private static final int UPLOAD = 5;
  private static final int YES = 0;
  private static final int NO = 1;
  private static final int PROBLEM = 2;
  private static final byte[] NOTHING = {};

  private final CheckpointStore store;
  private final Uploads uploads;
  private final Path socket;
  private final ServerSocketChannel server;

  StoreServer(CheckpointStore store, Uploads uploads, Path directory) throws IOException {
    this.store = store;
    this.uploads = uploads;
    this.socket = directory.resolve(SOCKET);
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    server.bind(UnixDomainSocketAddress.of(socket), 1024);
    Zygote.daemon("penstock-store-accept", this::accept);
  }

  private void accept() {
    while (true) {
      try {
        SocketChannel channel = server.accept();
        Zygote.daemon("penstock-store", () -> serve(channel));
      } catch (IOException closed) {
        return;
      }
    }
  }

  /** One worker, until it ends. */
  private void serve(SocketChannel channel) {
    try (DataInputStream in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel)));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(channel)))) {
      while (true) {
        answer(in.readUnsignedByte(), text(in, in.readInt()), in, out);
        out.flush();
      }
    } catch (EOFException ended) {
      // The worker has ended, or is done.
    } catch (IOException broken) {
      // Whoever reads its data channel sees the end and replaces it.
    }
  }

  private void answer(int what, String name, DataInputStream in, DataOutputStream out) throws IOException {
    Rest rest = new Rest(in, what == CREATE || what == UPLOAD ? in.readLong() : 0);
    byte[] found;
    try {
      found = done(what, name, rest);
    } catch (IOException | RuntimeException problem) {
      rest.skip();
      String words = problem.getMessage() == null ? problem.toString() : problem.getMessage();
      say(out, PROBLEM, words.getBytes(StandardCharsets.UTF_8));
      return;
    }
    say(out, found == null ? NO : YES, found == null ? NOTHING : found);
  }

  /** What is to be answered; null for no. */
  private byte[] done(int what, String name, Rest rest) throws IOException {
    switch (what) {
      case NAMES:
        return String.join("\n", store.names(name)).getBytes(StandardCharsets.UTF_8);
      case READ:
        return store.read(name);
      case CREATE:
        return store.create(name, rest) ? NOTHING : null;
      case UPLOAD:
        upload(name, rest);
        return NOTHING;
      case DELETE:
        store.delete(name);
        return NOTHING;
      default:
        throw new IOException("no question " + what);
    }
  }

  /** A file that is too large to wait here is written at once, and its worker waits. */
  private void upload(String name, Rest rest) throws IOException {
    long length = rest.left;
    if (!uploads.admits(length)) {
      make(name, rest);
      return;
    }
    byte[] content;
    try {
      content = rest.readNBytes((int) length);
    } catch (IOException broken) {
      uploads.release(length);
      throw broken;
    }
    uploads.begin(length, () -> make(name, new ByteArrayInputStream(content)));
  }

  private void make(String name, InputStream content) throws IOException {
    if (!store.create(name, content)) {
      throw new IOException(name + " is there already: two processes write as one");
    }
  }

  private static void say(DataOutputStream out, int what, byte[] content) throws IOException {
    out.writeByte(what);
    out.writeLong(content.length);
    out.write(content);
  }

  private static String text(DataInputStream in, int length) throws IOException {
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /** What is left of a question: all of it is read before the next one. */
  private static final class Rest extends InputStream {
    private final DataInputStream in;
    private long left;

    Rest(DataInputStream in, long left) {
      this.in = in;
      this.left = left;
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] bytes, int begin, int length) throws IOException {
      if (left == 0) {
        return -1;
      }
      int count = in.read(bytes, begin, (int) Math.min(length, left));
      if (count < 0) {
        throw new EOFException("a worker ended in the middle of a question");
      }
      left -= count;
      return count;
    }

    void skip() throws IOException {
      in.skipNBytes(left);
      left = 0;
    }
  }

  /** Nobody connects any more; workers that live on without their parent are served until they end. */
  void close() {
    try {
      server.close();
      Files.deleteIfExists(socket);
    } catch (IOException leftover) {
      socket.toFile().deleteOnExit();
    }
  }
}
