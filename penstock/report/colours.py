"""Colours that colour-blind readers can tell apart: the palette of Okabe and Ito (2008).

Whatever is told by a colour is also told by a line style, a position or a word.
"""

from typing import Final

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
SKY: Final = "#56B4E9"
VERMILION: Final = "#D55E00"
YELLOW: Final = "#F0E442"
BLACK: Final = "#000000"
GREY: Final = "#7F7F7F"

SERIES: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK, YELLOW)
VIOLATED: Final = VERMILION


def colour(number: int) -> str:
    """The colour of series `number`; they begin again after eight."""
    return SERIES[number % len(SERIES)]
