"""What a user declares: the graph, its tasks, wirings and constraints, and where they are placed (pure)."""
