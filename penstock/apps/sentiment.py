"""What a text feels like, by VADER (Hutto and Gilbert, ICWSM 2014)."""

from functools import cache
from typing import Any, Literal

Sentiment = Literal["positive", "neutral", "negative"]
# The usual thresholds of its authors.
CLEAR = 0.05


@cache
def _analyzer() -> Any:
    """Loaded once in a process, on first use: it reads a lexicon of 7,500 words."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def sentiment(words: str) -> Sentiment:
    """Positive, neutral or negative: by VADER's compound score of -1 to 1."""
    score: float = _analyzer().polarity_scores(words)["compound"]
    if score >= CLEAR:
        return "positive"
    return "negative" if score <= -CLEAR else "neutral"
