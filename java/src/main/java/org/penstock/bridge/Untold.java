package org.penstock.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * What a worker that was let go has written or prepared since its last mark, where commits are marks: whoever answers the next
 * one for its replica tells it. Thread-safe, and calls nobody.
 */
final class Untold {
  private static final String[] LISTS = {"files", "handles"};

  private ObjectNode kept;

  /** The last words of a worker that was let go. */
  synchronized void keep(String news) {
    JsonNode said = Json.parse(news).path("marked");
    if (!said.path("files").isEmpty() || !said.path("handles").isEmpty()) {
      kept = kept == null ? (ObjectNode) said : merged(said);
    }
  }

  /** What is to be said of an epoch: what a worker says of it (null without one), and what is kept. */
  synchronized String with(String said) {
    if (kept == null) {
      return said;
    }
    ObjectNode all = said == null ? kept : merged(Json.parse(said));
    kept = null;
    return Json.text(all);
  }

  private ObjectNode merged(JsonNode said) {
    ObjectNode all = (ObjectNode) said;
    for (String list : LISTS) {
      ArrayNode both = Json.MAPPER.createArrayNode();
      kept.path(list).forEach(both::add);
      said.path(list).forEach(both::add);
      all.set(list, both);
    }
    return all;
  }
}
