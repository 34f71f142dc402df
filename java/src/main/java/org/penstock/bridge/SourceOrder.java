package org.penstock.bridge;

import java.io.Serializable;

/** What one source partition is to do in one batch: from where to read, and where the run began. */
record SourceOrder(int partition, String offset, String runOffset) implements Serializable {}
