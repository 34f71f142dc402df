package org.penstock.bridge;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;

/** The few JSON texts that the bridge writes or reads itself. */
final class Reports {
  private Reports() {}

  static final ObjectMapper JSON = new ObjectMapper();

  static String failure(String task, int replica, String problem) {
    return text(Map.of("failed", Map.of("task", task, "replica", replica, "problem", problem)));
  }

  static String restart(String task, int replica, String how) {
    return text(Map.of("restarted", Map.of("task", task, "replica", replica, "how", how)));
  }

  static String gone(long pid) {
    return text(Map.of("gone", pid));
  }

  static JsonNode parse(String json) {
    try {
      return JSON.readTree(json);
    } catch (JsonProcessingException broken) {
      throw new FlowException("this is no JSON: " + json);
    }
  }

  static String text(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
