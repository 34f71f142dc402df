"""Applications: whole flows to run, simulate and measure with."""
