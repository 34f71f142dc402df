"""What is measured: accumulators, partial and global summaries, and the snapshot a policy reads."""
