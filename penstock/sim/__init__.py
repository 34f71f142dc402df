"""The simulated engine: the controller's Engine port over exact queues, at the papers' scale."""
