"""What driver and workers both know: frames, envelopes, keys, routes and orders."""
