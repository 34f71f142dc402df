package org.penstock.bridge;

import java.io.ByteArrayInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Files of a checkpoint on a file system of Hadoop's, by names below its root. Entries of its log must be created by one of several
 * drivers only, so it is refused where that cannot be had: see `refusal`.
 */
public final class CheckpointStore {
  private final FileSystem files;
  private final Path root;
  private final Creation creation;

  public CheckpointStore(String address, Configuration conf) throws IOException {
    Path place = new Path(address);
    files = place.getFileSystem(conf);
    root = files.makeQualified(place);
    boolean isPut = root.toUri().getScheme().equals(ConditionalPut.SCHEME);
    creation = isPut ? new ConditionalPut(files) : new ExclusiveRename(root, conf);
  }

  /** Why state cannot be committed at an address, in words; null if it can. */
  public static String refusal(String address, Configuration conf) throws IOException {
    CheckpointStore store = new CheckpointStore(address, conf);
    return store.creation.refusal(store.root);
  }

  /** Names of the files in a directory; none if it is not there. */
  public List<String> names(String directory) throws IOException {
    List<String> found = new ArrayList<>();
    try {
      for (FileStatus status : files.listStatus(path(directory))) {
        if (status.isFile()) {
          found.add(status.getPath().getName());
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

  /** Makes a file, which appears whole and is durable when this returns; false if there is one of that name. */
  public boolean create(String name, byte[] content) throws IOException {
    return create(name, new ByteArrayInputStream(content));
  }

  /** The same with all that is left of a stream. */
  boolean create(String name, InputStream content) throws IOException {
    return creation.create(path(name), content);
  }

  /** Removes a file, if it is there. */
  public void delete(String name) throws IOException {
    files.delete(path(name), false);
  }

  private Path path(String name) throws IOException {
    Path place = new Path(root, name);
    if (!place.toString().startsWith(root + "/")) {
      throw new IOException(name + " is not below " + root);
    }
    return place;
  }
}
