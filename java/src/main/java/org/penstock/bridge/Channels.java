package org.penstock.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** Who may send to whom in a batch, as the switches say it: the channels of a task, and where its marks go. */
final class Channels {
  /** A stream at its sender: the replicas [first, first + pool) of a layer, or the twin alone; via is a relay, -1 for none. */
  record Outlet(int stream, int layer, int first, int pool, int place, boolean local, int via, boolean twin) {}

  private final JsonNode switches;

  Channels(String switches) {
    this.switches = Json.parse(switches);
  }

  /** Whether commits are marks. */
  boolean areMarked() {
    return switches.hasNonNull("marked");
  }

  boolean exact(String task) {
    for (JsonNode name : switches.path("exact")) {
      if (name.asText().equals(task)) {
        return true;
      }
    }
    return false;
  }

  /** By `Envelopes.channel`, those of a replica of a task. */
  List<Integer> into(String task, int replica) {
    List<Integer> found = new ArrayList<>();
    for (JsonNode stream : switches.path("marked")) {
      if (!stream.get("receiver").asText().equals(task)) {
        continue;
      }
      boolean twin = stream.get("twin").asBoolean();
      int senders = stream.get("senders").asInt();
      for (int sender = twin ? replica : 0; sender < (twin ? replica + 1 : senders); sender++) {
        found.add(stream.get("number").asInt() << 16 | sender);
      }
    }
    return found;
  }

  List<Outlet> outOf(String task) {
    List<Outlet> found = new ArrayList<>();
    for (JsonNode stream : switches.path("marked")) {
      if (!stream.get("sender").asText().equals(task)) {
        continue;
      }
      JsonNode route = switches.get("routes").get(stream.get("name").asText());
      found.add(
          new Outlet(
              stream.get("number").asInt(), route.get("layer").asInt(), route.get("first").asInt(), route.get("pool").asInt(),
              route.get("place").asInt(), route.get("local").asBoolean(), route.hasNonNull("via") ? route.get("via").asInt() : -1,
              stream.get("twin").asBoolean()));
    }
    return found;
  }
}
