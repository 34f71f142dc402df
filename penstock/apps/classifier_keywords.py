"""What tweets are about: topic / subtopic / category / subcategory, and the words that tell."""

import re
from functools import cache
from typing import Final

# A word stands in one place only, so that it tells all four steps.
KEYWORDS: Final = {
    "leisure/media/screen/films": "movie movies film films cinema actor actress scene",
    "leisure/media/screen/series": "tv show episode season watch watching video series",
    "leisure/media/sound/music": "song songs music album band sing singing concert dance",
    "leisure/media/print/books": "book books read reading story novel poem",
    "leisure/sport/ball/football": "football soccer goal goals",
    "leisure/sport/ball/games": "game games team play playing player win winning",
    "leisure/sport/motion/running": "run running race gym bike",
    "leisure/outing/party/celebrations": "birthday party congrats christmas wedding",
    "leisure/outing/travel/trips": "trip travel flight beach holiday weekend vacation",
    "home/food/meals/lunch": "lunch breakfast sandwich",
    "home/food/meals/dinner": "dinner pizza eat eating food cook cake chicken",
    "home/food/drinks/hot": "coffee tea",
    "home/food/drinks/cold": "beer wine drink drinks drunk",
    "home/people/family/parents": "family mom dad mother father parents",
    "home/people/family/children": "baby kids kid son daughter child",
    "home/people/others/friends": "friend friends guys everyone people",
    "home/rest/bed/sleep": "sleep bed tired nap dream asleep",
    "work/job/place/office": "work working job office boss meeting business",
    "work/job/money/pay": "money pay paid buy cheap free sale",
    "work/study/school/exams": "school exam exams class college homework test teacher",
    "world/news/politics/elections": "election president vote politics government war obama",
    "world/news/press/reports": "news report article update announced",
    "world/nature/weather/rain": "rain weather storm snow cold wind",
    "world/nature/weather/sun": "sun sunny hot summer warm",
    "world/nature/animals/pets": "dog cat dogs cats pet",
    "world/technology/devices/phones": "phone iphone android laptop computer mac",
    "world/technology/network/web": "internet twitter google tweet post follow blog facebook website",
    "world/traffic/road/cars": "car traffic drive driving bus train road",
    "mind/mood/good/joy": "love happy great good awesome amazing fun best nice wonderful glad excited",
    "mind/mood/good/thanks": "thanks thank blessed luck lucky hope",
    "mind/mood/bad/anger": "hate angry damn hell stupid worst sucks annoying terrible",
    "mind/mood/bad/sorrow": "sad sorry cry lost miss worried afraid fear sick hurt dead die",
}  # fmt: skip
STEPS: Final = 4
OTHER: Final = "other"
_WORD: Final = re.compile(r"[a-z]+")

Path = tuple[str, ...]


@cache
def _labels() -> dict[Path, dict[str, str]]:
    """For each path so far: the next label that a word tells."""
    found: dict[Path, dict[str, str]] = {}
    for path, words in KEYWORDS.items():
        labels = tuple(path.split("/"))
        for step in range(STEPS):
            found.setdefault(labels[:step], {}).update(dict.fromkeys(words.split(), labels[step]))
    return found


def next_label(words: str, path: Path) -> str:
    """The label that most keywords of a text tell for the next step, the first of them in a draw."""
    told = _labels().get(path, {})
    votes: dict[str, int] = {}
    for word in _WORD.findall(words.lower()):
        if word in told:
            votes[told[word]] = votes.get(told[word], 0) + 1
    return max(votes, key=votes.__getitem__, default=OTHER)
