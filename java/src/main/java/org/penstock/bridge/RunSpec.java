package org.penstock.bridge;

import java.io.Serializable;

/**
 * What an executor needs to start Python workers for a run: interpreter, import path, the pickled plan, and the address of the
 * state in the checkpoint if workers cannot reach its files by themselves, else null.
 */
public record RunSpec(String id, String flow, String python, String pythonPath, byte[] plan, String checkpoint)
    implements Serializable {}
