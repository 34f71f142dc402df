package org.penstock.bridge;

import java.io.Serializable;

/** What one source partition is to do in one batch: which split to read, from where, and where the run began. */
record SourceOrder(int partition, FlowSource.Split split, String position, String runPosition) implements Serializable {}
