"""The controller: observe, decide, apply, and a record of every decision."""
