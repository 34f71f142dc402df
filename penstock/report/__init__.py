"""Pictures and pages: a flow as a graph, a recording as a report."""
