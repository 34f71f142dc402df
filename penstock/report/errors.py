"""What can be wrong with a wish for a picture or a page; importing this needs no extra."""


class PictureError(ValueError):
    """A picture that cannot be made; the message says why and what would be right."""
