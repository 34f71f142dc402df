package org.penstock.bridge;

import java.io.Serializable;

/**
 * What one partition of a source is to do in one batch: where each of its splits stands and where the run began with it, as
 * JSON objects by the name of the split.
 */
record SourceOrder(int partition, String source, String positions, String runPositions) implements Serializable {}
