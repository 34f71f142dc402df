package org.penstock.bridge;

import java.io.Serializable;

/** What an executor needs to start Python workers for a run: interpreter, import path, and the pickled plan. */
public record RunSpec(String id, String flow, String python, String pythonPath, byte[] plan) implements Serializable {}
