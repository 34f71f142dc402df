package org.penstock.bridge;

import java.io.Serializable;

/** What one source partition is to do in one batch: from where, in which batch, and for how long at most. */
record SourceOrder(int partition, String offset, String runOffset, long batch, long batchMs) implements Serializable {}
