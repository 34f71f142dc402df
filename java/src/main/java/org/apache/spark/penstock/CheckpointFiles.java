package org.apache.spark.penstock;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;

/**
 * The files of Spark's own log of a query. On a local disk Hadoop starts a program for each mode that it sets and each link that it
 * looks for, several for one file; here Java does that itself. There are no sums beside the files: Spark does not look at them when
 * it reads one. Elsewhere all is Hadoop's.
 */
public final class CheckpointFiles extends FileContextBasedCheckpointFileManager {
  public CheckpointFiles(Path path, Configuration conf) {
    super(path, conf);
  }

  @Override
  public FSDataOutputStream createTempFile(Path path) {
    if (!isLocal()) {
      return super.createTempFile(path);
    }
    try {
      return new FSDataOutputStream(new Told(new BufferedOutputStream(new FileOutputStream(file(path)))), null);
    } catch (IOException refused) {
      throw new UncheckedIOException(refused);
    }
  }

  @Override
  public void renameTempFile(Path from, Path to, boolean overwriteIfPossible) {
    if (!isLocal()) {
      super.renameTempFile(from, to, overwriteIfPossible);
      return;
    }
    try {
      rename(file(from), file(to), overwriteIfPossible);
    } catch (FileAlreadyExistsException there) {
      throw SparkInternals.<RuntimeException>unchecked(there); // Spark waits for just this
    } catch (IOException refused) {
      throw new UncheckedIOException(refused);
    }
  }

  @Override
  public boolean exists(Path path) {
    return isLocal() ? file(path).exists() : super.exists(path);
  }

  private static void rename(File from, File to, boolean overwrite) throws IOException {
    if (overwrite) {
      Files.deleteIfExists(new File(to.getParentFile(), "." + to.getName() + ".crc").toPath()); // Hadoop's, of what was there
      Files.move(from.toPath(), to.toPath(), StandardCopyOption.ATOMIC_MOVE);
    } else {
      moveUnlessThere(from, to);
    }
  }

  private static void moveUnlessThere(File from, File to) throws IOException {
    try {
      Files.createLink(to.toPath(), from.toPath()); // of two who do this at once one fails
    } catch (java.nio.file.FileAlreadyExistsException there) {
      throw new FileAlreadyExistsException(to + " is there already");
    } catch (UnsupportedOperationException | IOException noLinks) { // a file system without them
      if (to.exists()) {
        throw new FileAlreadyExistsException(to + " is there already");
      }
      Files.move(from.toPath(), to.toPath(), StandardCopyOption.ATOMIC_MOVE);
    }
    Files.deleteIfExists(from.toPath());
  }

  /** Says of what kind a problem is: "No space left on device" alone would not tell that it is one of files. */
  private static final class Told extends FilterOutputStream {
    Told(OutputStream out) {
      super(out);
    }

    @Override
    public void write(byte[] bytes, int begin, int length) {
      try {
        out.write(bytes, begin, length);
      } catch (IOException refused) {
        throw new UncheckedIOException(refused);
      }
    }

    @Override
    public void close() {
      try {
        super.close();
      } catch (IOException refused) {
        throw new UncheckedIOException(refused);
      }
    }
  }

  private static File file(Path path) {
    return new File(path.toUri().getPath());
  }
}
