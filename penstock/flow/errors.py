"""The errors users see: a flow that cannot run as it was declared, and one that stopped by itself."""


class FlowError(ValueError):
    """A flow was declared wrongly; the message names the part, what is wrong and what would be right."""


class JobFailed(RuntimeError):  # noqa: N818 - said of a job, as users say it
    """The flow has stopped by itself; the message names the task, the item and the error."""
