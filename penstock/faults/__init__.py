"""Faults that a flow must survive, as trials with a checker: `penstock faults`."""
