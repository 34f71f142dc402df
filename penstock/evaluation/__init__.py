"""The papers' applications on Spark, and their figures beside those of the papers."""
