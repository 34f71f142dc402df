package org.penstock.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/**
 * How a worker ended, in words, and the task that is to blame. `item` of envelope `sequence` is the one that exceeded a limit of
 * its task, -1 if no single item is known.
 */
public record Epitaph(String task, String how, long sequence, int item) {
  public Epitaph(String task, String how) {
    this(task, how, 0, -1);
  }

  /** From what the parent of the workers said when it ended one: {"task", "problem", "sequence", "item"}. */
  static Epitaph parse(String json) {
    JsonNode over = Json.parse(json);
    return new Epitaph(
        over.get("task").asText(), over.get("problem").asText(), over.get("sequence").asLong(), over.get("item").asInt());
  }

  /** For the worker that puts an item aside. */
  String verdict(String problem) {
    return Json.text(Map.of("task", task, "problem", problem));
  }
}
