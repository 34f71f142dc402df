package org.penstock.bridge;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Options.CreateOpts;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Files of a checkpoint on a file system of Hadoop's, by names below its root. Entries of its log must be created by one of several
 * drivers only, so it is refused where renaming without overwriting is not one step: see `refusal`.
 */
public final class CheckpointStore {
  /** A name node renames in one step, and refuses if the target is there. Elsewhere Hadoop looks first and renames then. */
  private static final Set<String> EXCLUSIVE = Set.of("hdfs", "webhdfs", "swebhdfs");

  private static final FsPermission OWN_FILE = new FsPermission((short) 0600);
  private static final String UNFINISHED = ".new-"; // as in penstock/epochs/storage.py
  private static final int CHUNK = 1 << 16;

  private final FileContext files;
  private final Path root;

  public CheckpointStore(String address, Configuration conf) throws IOException {
    Path place = new Path(address);
    files = FileContext.getFileContext(place.toUri(), conf);
    root = files.makeQualified(place);
  }

  /** Why state cannot be committed at an address, in words; null if it can. A view is judged by what it shows. */
  public static String refusal(String address, Configuration conf) throws IOException {
    Path place = new Path(address);
    FileContext files = FileContext.getFileContext(place.toUri(), conf);
    String scheme = files.makeQualified(place).toUri().getScheme();
    if (scheme.equals("viewfs")) {
      scheme = files.resolvePath(place).toUri().getScheme();
    }
    if (EXCLUSIVE.contains(scheme)) {
      return null;
    }
    return "files of " + scheme + ": cannot be renamed in one step that never overwrites, so two drivers could commit at once";
  }

  /** Names of the files in a directory; none if it is not there. */
  public List<String> names(String directory) throws IOException {
    List<String> found = new ArrayList<>();
    for (FileStatus status : statuses(directory)) {
      found.add(status.getPath().getName());
    }
    return found;
  }

  private List<FileStatus> statuses(String directory) throws IOException {
    List<FileStatus> found = new ArrayList<>();
    try {
      RemoteIterator<FileStatus> all = files.listStatus(path(directory));
      while (all.hasNext()) {
        FileStatus status = all.next();
        if (status.isFile()) {
          found.add(status);
        }
      }
    } catch (FileNotFoundException none) {
      return List.of();
    }
    return found;
  }

  /** The content of a file; null if there is none. */
  public byte[] read(String name) throws IOException {
    try (FSDataInputStream stream = files.open(path(name))) {
      return stream.readAllBytes();
    } catch (FileNotFoundException none) {
      return null;
    }
  }

  /** Makes a file that must not be there yet; on the disks of who holds it when this returns. */
  public void writeNew(String name, byte[] content) throws IOException {
    try (FSDataOutputStream stream = begin(name)) {
      stream.write(content);
      stream.hsync();
    }
  }

  /** The same with as many bytes of a stream. */
  void writeNew(String name, InputStream content, long length) throws IOException {
    try (FSDataOutputStream stream = begin(name)) {
      byte[] chunk = new byte[(int) Math.min(CHUNK, Math.max(1, length))];
      for (long left = length; left > 0; ) {
        int count = content.readNBytes(chunk, 0, (int) Math.min(chunk.length, left));
        if (count == 0) {
          throw new IOException(name + " ended before its length");
        }
        stream.write(chunk, 0, count);
        left -= count;
      }
      stream.hsync();
    }
  }

  /** Makes a file that appears whole, and must not be there yet. */
  void create(String name, InputStream content, long length) throws IOException {
    String temporary = name.substring(0, name.lastIndexOf('/') + 1) + UNFINISHED + UUID.randomUUID();
    writeNew(temporary, content, length);
    if (!rename(temporary, name)) {
      delete(temporary);
      throw new IOException(name + " is there already: two processes write as one");
    }
  }

  private FSDataOutputStream begin(String name) throws IOException {
    return files.create(path(name), EnumSet.of(CreateFlag.CREATE), CreateOpts.createParent(), CreateOpts.perms(OWN_FILE));
  }

  /** Gives a file another name; false if there is a file of that name. */
  public boolean rename(String name, String target) throws IOException {
    try {
      files.rename(path(name), path(target), Rename.NONE);
      return true;
    } catch (FileAlreadyExistsException there) {
      return false;
    }
  }

  /** Removes a file, if it is there. */
  public void delete(String name) throws IOException {
    try {
      files.delete(path(name), false);
    } catch (FileNotFoundException gone) {
      // As it should be.
    }
  }

  private Path path(String name) throws IOException {
    Path place = new Path(root, name);
    if (!place.toString().startsWith(root + "/")) {
      throw new IOException(name + " is not below " + root);
    }
    return place;
  }
}
