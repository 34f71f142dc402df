package org.penstock.bridge;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;

/**
 * An object of S3 is put on the condition that there is none of that name (`If-None-Match: *`), which the store looks at when all of
 * it is there. Large files are put in parts; then the last request, which makes the object, has the condition.
 *
 * A request whose answer is lost is sent again, and may find what it has made itself. So each object names its creator, in
 * metadata that are put with it, and who is refused looks there. Its content would not do: two drivers that start at
 * once have the same fence to write.
 */
final class ConditionalPut implements Creation {
  static final String SCHEME = "s3a";
  private static final String CONDITION = CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE;
  private static final String CREATOR = "penstock-creator";
  private static final int RIVALS = 8;

  private final FileSystem files;

  ConditionalPut(FileSystem files) {
    this.files = files;
  }

  @Override
  public boolean create(Path file, InputStream content) throws IOException {
    String creator = UUID.randomUUID().toString();
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(file).create();
    builder.must(CONDITION, true);
    builder.must("fs.s3a.create.header." + CREATOR, creator);
    FSDataOutputStream stream = builder.build();
    try {
      content.transferTo(stream);
    } catch (IOException | RuntimeException broken) {
      stream.abort(); // closing it would make an object of what there is
      throw broken;
    }
    try {
      stream.close();
      return true;
    } catch (IOException problem) {
      return creator.equals(creatorOf(file, problem));
    }
  }

  /** Who made what is there, null if that is not known. If nothing is there, the problem was another one than that. */
  private String creatorOf(Path file, IOException problem) throws IOException {
    try {
      byte[] name = files.getXAttr(file, "header." + CREATOR);
      return name == null ? null : new String(name, StandardCharsets.UTF_8);
    } catch (FileNotFoundException none) {
      throw problem;
    } catch (IOException another) {
      problem.addSuppressed(another);
      throw problem;
    }
  }

  /** Stores that do not know the condition let everybody through, and those that only look first some of several at once. */
  @Override
  public String refusal(Path root) throws IOException {
    if (!files.hasPathCapability(root, CONDITION)) {
      return "files of s3a: are not put on condition, as fs.s3a.create.conditional.enabled is false or hadoop-aws is older than"
          + " 3.4.2, so two drivers could commit at once";
    }
    int made = rivals(new Path(root, ".penstock-probe-" + UUID.randomUUID()));
    if (made == 1) {
      return null;
    }
    return "its store does not keep to If-None-Match (" + made + " of " + RIVALS + " that put one object at once were let"
        + " through), so two drivers could commit at once";
  }

  /** How many of several can make the same file at once. */
  private int rivals(Path probe) throws IOException {
    CountDownLatch begin = new CountDownLatch(1);
    List<FutureTask<Boolean>> all = new ArrayList<>();
    for (int each = 0; each < RIVALS; each++) {
      FutureTask<Boolean> rival = new FutureTask<>(() -> {
        begin.await();
        return create(probe, InputStream.nullInputStream());
      });
      all.add(rival);
      Zygote.daemon("penstock-probe", rival);
    }
    begin.countDown();
    try {
      int made = 0;
      for (FutureTask<Boolean> rival : all) {
        made += rival.get() ? 1 : 0;
      }
      return made;
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof IOException problem ? problem : new IOException(failed.getCause());
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new IOException("it was interrupted", stopped);
    } finally {
      files.delete(probe, false);
    }
  }
}
