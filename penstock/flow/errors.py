"""The error of a flow that cannot run as it was declared."""


class FlowError(ValueError):
    """A flow was declared wrongly; the message names the part, what is wrong and what would be right."""
