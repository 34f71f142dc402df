package org.penstock.bridge;

import java.util.Map;

/**
 * What a running flow is to do now. `json` is for the Python workers; the rest is what the bridge itself must know:
 * how many replicas of each task are active, the last batch that has to end, and whether that end is for good.
 */
public record Settings(
    String run, long version, String json, Map<String, Integer> active, long endBatch, boolean closing) {}
