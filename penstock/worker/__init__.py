"""What runs in a worker process; no Spark here."""
