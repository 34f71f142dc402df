"""A flow in a browser: a recording with a slider for time, or one that runs, to look at and to steer."""
