"""The verbs of the corpus in both languages, with the things they are done to and the places where they are done.

A row: English base, past, participle (only the base if regular), particle in brackets | Nepali infinitive | flags |
objects | places. The flags:

    t   transitive: the subject takes ले in the past            n   also said without an object
    s   a state: no continuous                                  g   a movement: with a goal or an origin
    q   only in questions: "what did he say?"

The objects are tags and nouns of nouns.py; @लाई and @सँग stand for a person (भेट्नु takes लाई, कुरा गर्नु takes सँग).
"""

from dataclasses import dataclass

from data.en_ne.english import EnglishVerb, past_form
from data.en_ne.nouns import Noun, tagged
from data.en_ne.verbs import Verb

TABLE = """
eat ate eaten | खानु | tn | edible | home school kitchen office hotel here
drink drank drunk | पिउनु | t | drink | home kitchen office hotel here
cook | पकाउनु | tn | cook | home kitchen hotel
buy bought bought | किन्नु | t | buy flower | market shop city here
sell sold sold | बेच्नु | t | sell fruit vegetable fish milk | market shop city village
read read read | पढ्नु | tn | read | home library school room garden
study | पढ्नु | tn | subject language | home school library city
write wrote written | लेख्नु | tn | write | home room office school
learn | सिक्नु | t | learn language subject | school home here Nepal
teach taught taught | सिकाउनु | t | language subject music | school here village
speak spoke spoken | बोल्नु | t | language | home school here
see saw seen | देख्नु | ts | see @लाई | market village city here park
watch | हेर्नु | t | screen | home room hotel
look [at] | हेर्नु | t | look | here room
listen [to] | सुन्नु | t | hear | home room garden
sing sang sung | गाउनु | tn | sing | school home garden
play | खेल्नु | tn | sport | school park field home village
wash | धुनु | t | wash | home river kitchen
clean | सफा गर्नु | t | clean | -
open | खोल्नु | t | open | -
close | बन्द गर्नु | t | close | -
make made made | बनाउनु | t | make | home village
repair | मर्मत गर्नु | t | repair | home shop here
use | प्रयोग गर्नु | t | use | home school office
wear wore worn | लगाउनु | ts | wear | school home
carry | बोक्नु | ts | carry | -
bring brought brought | ल्याउनु | t | bring water food tea | -
send sent sent | पठाउनु | t | send | -
take took taken | लिनु | t | book pen bag ticket money gift umbrella key | -
find found found | भेट्टाउनु | ts | find | market school room garden
lose lost lost | हराउनु | ts | lose | market school city park
look [for] | खोज्नु | t | @लाई key house room work phone shop book bag hotel | market city here
cut cut cut | काट्नु | t | cut vegetable apple mango | kitchen
plant | रोप्नु | t | plant | garden field village
pick | टिप्नु | t | pick | garden
drive drove driven | चलाउनु | t | car bus motorcycle | city Kathmandu
ride rode ridden | चलाउनु | t | bicycle | park village
ask | सोध्नु | t | ask | school
tell told told | भन्नु | t | tell | -
understand understood understood | बुझ्नु | ts | understand language | -
remember | सम्झनु | ts | name story song lesson | -
forget forgot forgotten | बिर्सनु | ts | name lesson key bag umbrella work | -
start | सुरु गर्नु | t | work lesson game | -
finish | सिध्याउनु | t | work lesson book | -
win won won | जित्नु | ts | game | -
throw threw thrown | फाल्नु | t | stone paper bottle | here river
count | गन्नु | t | money book chair animal | -
meet met met | भेट्नु | t | @लाई | market school park office
help | मद्दत गर्नु | t | @लाई | home school
call | फोन गर्नु | t | @लाई | -
wait [for] | पर्खनु | t | @लाई bus | here home school park
wait | पर्खनु | tn | - | here home school park
love | माया गर्नु | ts | @लाई | -
know knew known | चिन्नु | ts | @लाई | -
thank | धन्यवाद दिनु | t | @लाई | -
invite | बोलाउनु | t | @लाई | -
trust | विश्वास गर्नु | ts | @लाई | -
talk [to] | कुरा गर्नु | t | @सँग | school market home office
do did done | गर्नु | t | work | home office school
say said said | भन्नु | tq | - | -
go went gone | जानु | g | - | -
come came come | आउनु | g | - | -
sleep slept slept | सुत्नु | n | - | home room here hotel
get got got [up] | उठ्नु | n | - | -
sit sat sat | बस्नु | ns | - | here room garden park
live | बस्नु | sn | - | Kathmandu Nepal Pokhara village city here India
stay | बस्नु | n | - | hotel home village here
walk | हिँड्नु | n | - | park forest garden
run ran run | दौडनु | n | - | park field
laugh | हाँस्नु | n | - | -
cry | रुनु | n | - | room home
dance | नाच्नु | n | - | school village home
work | काम गर्नु | tn | - | office hospital school field home market hotel bank shop
swim swam swum | पौडी खेल्नु | tn | - | river
rest | आराम गर्नु | tn | - | home room garden here
travel | यात्रा गर्नु | tn | - | Nepal India
return | फर्कनु | g | - | -
arrive | आइपुग्नु | gs | - | -
smile | मुस्कुराउनु | n | - | -
fall fell fallen | लड्नु | ns | - | -
think thought thought | सोच्नु | tn | - | -
"""


@dataclass(frozen=True)
class Action:
    """One verb in both languages."""

    english: EnglishVerb
    nepali: Verb
    flags: str
    objects: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.english.after(self.english.base)

    @property
    def transitive(self) -> bool:
        return "t" in self.flags

    @property
    def alone(self) -> bool:
        """Whether it makes a sentence without an object."""
        return "n" in self.flags

    @property
    def state(self) -> bool:
        return "s" in self.flags

    @property
    def person_case(self) -> str | None:
        """लाई or सँग, where the object is a person."""
        marked = [word[1:] for word in self.objects if word[0] == "@"]
        return marked[0] if marked else None

    def things(self) -> tuple[Noun, ...]:
        return tagged(*(word for word in self.objects if word[0] not in "@-"))


def _action(line: str) -> Action:
    words, nepali, flags, objects, places = (cell.strip() for cell in line.split("|"))
    particle = words[words.find("[") + 1 : -1] if words.endswith("]") else ""
    forms = words.split(" [")[0].split()
    base, past, participle = forms if len(forms) == 3 else (forms[0], past_form(forms[0]), past_form(forms[0]))
    places = tuple(places.split()) if places != "-" else ()
    objects = tuple(objects.split()) if objects != "-" else ()
    return Action(EnglishVerb(base, past, participle, particle), Verb(nepali), flags, objects, places)


EVERY_ACTION = {action.key: action for action in map(_action, TABLE.strip().splitlines())}
ACTIONS = {key: action for key, action in EVERY_ACTION.items() if "q" not in action.flags}
# What a newcomer meets first; core_paradigms (sentences/clauses.py) takes each verb through all persons and tenses.
CORE = (
    "eat", "drink", "go", "come", "see", "read", "write", "buy", "sleep", "work", "play", "speak", "learn", "live",
    "sit", "cook", "make", "wash", "open", "close", "watch", "listen to", "help", "meet", "call", "wait for", "bring",
    "send", "take", "find", "understand", "forget", "love", "know", "run", "walk", "get up", "study", "teach", "wear",
    "clean", "sell", "dance", "laugh", "talk to", "look for", "return", "use", "drive", "swim",
)  # fmt: skip
