"""When, how often and where: adverbs, and places with their three cases (in, to, from)."""

from dataclasses import dataclass

# English | Nepali, by the tenses they go with. Weekdays and the hours are added below.
PAST_TIMES = {
    "yesterday": "हिजो", "yesterday morning": "हिजो बिहान", "yesterday evening": "हिजो साँझ",
    "last night": "हिजो राति", "last week": "गत हप्ता", "last month": "गत महिना", "last year": "गत वर्ष",
    "an hour ago": "एक घण्टा अगि", "two days ago": "दुई दिन अगि", "three years ago": "तीन वर्ष अगि", "today": "आज",
    "this morning": "आज बिहान", "in the morning": "बिहान", "in the evening": "साँझ",
}  # fmt: skip
FUTURE_TIMES = {
    "tomorrow": "भोलि", "tomorrow morning": "भोलि बिहान", "tomorrow evening": "भोलि साँझ",
    "the day after tomorrow": "पर्सि", "next week": "अर्को हप्ता", "next month": "अर्को महिना", "next year": "अर्को वर्ष",
    "today": "आज", "tonight": "आज राति", "this evening": "आज साँझ", "in the evening": "साँझ", "soon": "चाँडै",
}  # fmt: skip
HABIT_TIMES = {
    "every day": "हरेक दिन", "every morning": "हरेक बिहान", "every evening": "हरेक साँझ", "every week": "हरेक हप्ता",
    "every month": "हरेक महिना", "in the morning": "बिहान", "in the afternoon": "दिउँसो", "in the evening": "साँझ",
    "at night": "राति",
}  # fmt: skip
NOW_TIMES = {"now": "अहिले", "today": "आज"}
THEN_TIMES = {
    "then": "त्यति बेला", "yesterday": "हिजो", "in the morning": "बिहान", "last night": "हिजो राति",
    "yesterday evening": "हिजो साँझ",
}  # fmt: skip
WEEKDAYS = {
    "Sunday": "आइतबार", "Monday": "सोमबार", "Tuesday": "मङ्गलबार", "Wednesday": "बुधबार", "Thursday": "बिहीबार",
    "Friday": "शुक्रबार", "Saturday": "शनिबार",
}  # fmt: skip
HOURS = {
    "one": "एक", "two": "दुई", "three": "तीन", "four": "चार", "five": "पाँच", "six": "छ", "seven": "सात", "eight": "आठ",
    "nine": "नौ", "ten": "दस", "eleven": "एघार", "twelve": "बाह्र",
}  # fmt: skip
ON_DAYS = {f"on {english}": nepali for english, nepali in WEEKDAYS.items()}
AT_HOURS = {f"at {english} o'clock": f"{nepali} बजे" for english, nepali in HOURS.items()}

# What stands before the English verb: "I always eat". In Nepali it follows the subject. कहिल्यै "ever" needs a negative
# verb: "never".
FREQUENCY = {"always": "सधैँ", "often": "प्रायः", "sometimes": "कहिलेकाहीँ", "never": "कहिल्यै"}

TIMES = {
    "present": {**HABIT_TIMES, **ON_DAYS, **AT_HOURS},
    "past": {**PAST_TIMES, **ON_DAYS, **AT_HOURS},
    "future": {**FUTURE_TIMES, **ON_DAYS, **AT_HOURS},
    "continuous": NOW_TIMES,
    "past continuous": THEN_TIMES,
    "perfect": {"today": "आज"},
    "used to": {"every day": "हरेक दिन", "in the morning": "बिहान", "in the evening": "साँझ", "every week": "हरेक हप्ता"},
    "can": {"now": "अहिले", "today": "आज", "tomorrow": "भोलि"},
    "could": {"yesterday": "हिजो", "last night": "हिजो राति"},
    "want to": {"now": "अहिले", "today": "आज", "tomorrow": "भोलि", "tonight": "आज राति"},
    "wanted to": {"yesterday": "हिजो"},
    "must": {"now": "अहिले", "today": "आज", "tomorrow": "भोलि", "every day": "हरेक दिन"},
    "have to": {"now": "अहिले", "today": "आज", "tomorrow": "भोलि", "every day": "हरेक दिन"},
    "had to": {"yesterday": "हिजो", "last week": "गत हप्ता"},
}


@dataclass(frozen=True)
class Place:
    """A place: "at school" स्कूलमा, "to school" स्कूल (going needs no case), "from school" स्कूलबाट. `at` has the
    English ways to say where.
    """

    key: str
    nepali: str
    at: tuple[str, ...]
    to: str
    origin: str

    @property
    def locative(self) -> str:
        return self.nepali if self.key in ("here", "there", "outside") else self.nepali + "मा"


# key | Nepali | at, in ... | to ...; the word "from" is put before the noun of the last column.
PLACE_TABLE = """
home | घर | at home | home | home
school | स्कूल | at school, in [the] school | to school | school
office | अफिस | at [the] office, in [the] office | to [the] office | [the] office
market | बजार | in [the] market, at [the] market | to [the] market | [the] market
hospital | अस्पताल | in [the] hospital, at [the] hospital | to [the] hospital | [the] hospital
shop | पसल | in [the] shop, at [the] shop | to [the] shop | [the] shop
temple | मन्दिर | in [the] temple, at [the] temple | to [the] temple | [the] temple
village | गाउँ | in [the] village | to [the] village | [the] village
city | सहर | in [the] city | to [the] city | [the] city
garden | बगैँचा | in [the] garden | to [the] garden | [the] garden
kitchen | भान्सा | in [the] kitchen | to [the] kitchen | [the] kitchen
field | खेत | in [the] field | to [the] field | [the] field
forest | जङ्गल | in [the] forest | to [the] forest | [the] forest
hotel | होटल | in [the] hotel, at [the] hotel | to [the] hotel | [the] hotel
library | पुस्तकालय | in [the] library, at [the] library | to [the] library | [the] library
park | पार्क | in [the] park, at [the] park | to [the] park | [the] park
room | कोठा | in [the] room | to [the] room | [the] room
bank | बैंक | in [the] bank, at [the] bank | to [the] bank | [the] bank
airport | विमानस्थल | at [the] airport | to [the] airport | [the] airport
house | घर | in [the] house | to [the] house | [the] house
river | नदी | in [the] river | to [the] river | [the] river
Kathmandu | काठमाडौँ | in Kathmandu | to Kathmandu | Kathmandu
Pokhara | पोखरा | in Pokhara | to Pokhara | Pokhara
Nepal | नेपाल | in Nepal | to Nepal | Nepal
India | भारत | in India | to India | India
here | यहाँ | here | here | here
there | त्यहाँ | there | there | there
outside | बाहिर | outside | outside | outside
"""


def _place(line: str) -> Place:
    key, nepali, at, to, origin = (cell.strip() for cell in line.split("|"))
    return Place(key, nepali, tuple(part.strip() for part in at.split(",")), to, f"from {origin}")


PLACES = {place.key: place for place in map(_place, PLACE_TABLE.strip().splitlines())}
GOALS = tuple(
    place for key, place in PLACES.items() if key not in ("here", "room", "house", "outside", "river", "kitchen")
)
ORIGINS = tuple(place for place in GOALS if place.key != "there")
WHERE = tuple(place for key, place in PLACES.items() if key not in ("river", "house"))  # where a person can be
