"""From the reports of workers to snapshots, metrics and progress, in the driver."""
