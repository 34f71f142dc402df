"""The runtime on Spark: planner, bridge, workers, and the handle of a running flow."""
