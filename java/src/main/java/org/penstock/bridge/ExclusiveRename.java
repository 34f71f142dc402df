package org.penstock.bridge;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.EnumSet;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.Options.CreateOpts;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/** A file is written and synced under a name that nobody else has, and renamed, which is refused where the name is taken. */
final class ExclusiveRename implements Creation {
  /** A name node renames in one step, and refuses if the target is there. Elsewhere Hadoop looks first and renames then. */
  private static final Set<String> EXCLUSIVE = Set.of("hdfs", "webhdfs", "swebhdfs");

  private static final FsPermission OWN_FILE = new FsPermission((short) 0600);
  private static final String UNFINISHED = ".new-"; // as in penstock/epochs/storage.py

  private final FileContext files;

  ExclusiveRename(Path root, Configuration conf) throws IOException {
    files = FileContext.getFileContext(root.toUri(), conf);
  }

  /** A view is judged by what it shows. */
  @Override
  public String refusal(Path root) throws IOException {
    String scheme = root.toUri().getScheme();
    if (scheme.equals("viewfs")) {
      scheme = files.resolvePath(root).toUri().getScheme();
    }
    if (EXCLUSIVE.contains(scheme)) {
      return null;
    }
    return "files of " + scheme + ": cannot be renamed in one step that never overwrites, so two drivers could commit at once";
  }

  @Override
  public boolean create(Path file, InputStream content) throws IOException {
    Path temporary = new Path(file.getParent(), UNFINISHED + UUID.randomUUID());
    try (FSDataOutputStream stream =
        files.create(temporary, EnumSet.of(CreateFlag.CREATE), CreateOpts.createParent(), CreateOpts.perms(OWN_FILE))) {
      content.transferTo(stream);
      stream.hsync();
    }
    try {
      files.rename(temporary, file, Rename.NONE);
      return true;
    } catch (FileAlreadyExistsException taken) {
      remove(temporary);
      return false;
    }
  }

  /** A driver that begins may have swept it away. */
  private void remove(Path temporary) throws IOException {
    try {
      files.delete(temporary, false);
    } catch (FileNotFoundException gone) {
      // As it should be.
    }
  }
}
