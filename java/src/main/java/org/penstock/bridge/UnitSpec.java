package org.penstock.bridge;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.io.Serializable;

/**
 * Tasks joined by forward streams; a partition hosts one replica of each. `first` is the partition of replica 0 in its
 * layer and `feeds[i]` lists the places of the tasks that task i feeds inside the unit.
 */
public record UnitSpec(String[] tasks, int[][] feeds, int first, int pool) implements Serializable {
  /** From a JSON array of {"tasks", "feeds", "first", "pool"}. */
  public static UnitSpec[] parse(String json) throws JsonProcessingException {
    return Json.MAPPER.readValue(json, UnitSpec[].class);
  }

  boolean hosts(int partition) {
    return partition >= first && partition < first + pool;
  }
}
