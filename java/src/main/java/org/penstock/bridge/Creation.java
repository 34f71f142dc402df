package org.penstock.bridge;

import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.fs.Path;

/** How a file of a checkpoint gets its name: whole or not at all, and of several that want it one alone. */
interface Creation {
  /** Durable when this returns; false, and nothing happens, if there is a file of that name. */
  boolean create(Path file, InputStream content) throws IOException;

  /** Why this cannot be relied on below a directory, in words; null if it can. */
  String refusal(Path root) throws IOException;
}
