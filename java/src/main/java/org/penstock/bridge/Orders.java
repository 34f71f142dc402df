package org.penstock.bridge;

import java.util.Map;
import java.util.Set;

/**
 * What a running flow is to do now. `switches` is JSON for the Python workers; the rest is what the bridge itself must
 * know: how many replicas of each task are active, which tasks run in the worker of another, the batch that runs, the
 * last batch that has to end, whether that end is for good, which epoch is to be marked, with which one keys change hands
 * (0: with none), and of which tasks.
 */
public record Orders(
    String run, long version, String switches, Map<String, Integer> active, Set<String> chained, long batch, long endBatch,
    boolean closing, Epochs epochs, long moving, Set<String> moved) {}
