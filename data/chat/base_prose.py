"""Short English prose of the base text: small stories about made people, everyday paragraphs, facts and sums."""

from random import Random

from data.chat import world
from data.chat.base_people import cast
from data.chat.fact import Fact
from data.chat.facts import FACTS, SUMS, Sum
from data.chat.names import seen_name
from data.chat.writing import blocks, write

STORIES = blocks("""
    One [morning|evening|{day}], {P} was not at home. {N} looked in the garden, but the {pet} was not there. {N}
    looked [behind the house|under the trees|on the road] and called, "{P}! {P}!" Then {N} asked {F}, "Have you seen
    my {pet}?" "What is its name?" asked {F}. "Its name is {P}," said {N}. Then they heard something in the
    [kitchen|shed|old basket]. It was {P}! {N} was very happy to have {P} back.

    {N} wrote a letter. It began: "Dear {F}, I live in {place} now. I like {like}, and I think of you. Please write
    soon. Your {N}." [Two|Three|Five] days later {F} got the letter from {N}. {F} read that {N} lives in {place},
    and [was glad|smiled]. "I will visit {N} in {place}," said {F}.

    A new [child|pupil] came to our school. "What is your name?" asked the teacher. "My name is {F}," said the
    newcomer. "Where do you come from, {F}?" "I come from {place}." "Welcome, {F} from {place}," said the teacher.
    "Please sit down next to {N}." So {F} sat next to {N}, and soon {N} and {F} were friends.

    {N} went to the market to buy {food}. On the way, {he} met {F}. "Where are you going, {N}?" asked {F}. "I am
    going to buy {food}," said {N}. "May I come with you?" "Of course, {F}." So {N} and {F} went to the market
    together. They bought {food}, and {N} carried everything home.

    On {day}, {N} had a birthday. {F} came and brought a [small|big|{colour}] box. "What is in the box, {F}?" asked
    {N}. "Open it," said {F}. In the box was a little {pet}. "I will call it {P}," said {N}. Since that {day}, {P}
    has lived with {N}, and when {F} comes to visit, {P} is the first to say hello.

    {N} is [ill|not well] today and stays in bed. {F} comes to see {N} and brings {food}. "How are you, {N}?" asks
    {F}. "I am [better|a little better] now," says {N}. "Thank you, {F}." {P} the {pet} lies at the foot of the bed.
    Tomorrow {N} can get up again.

    {F} rang at the door. "Who is there?" asked {N}. "It is me, {F}." {N} opened the door. "Come in, {F}," said {N}.
    "Would you like [a cup of tea|a glass of water|something to eat]?" "Yes, please," said {F}. They sat down
    together, and {N} told {F} about {place}.

    In the bus to {place}, {N} sat next to somebody who was reading. "What are you reading?" asked {N}. "A book
    about {animals}," was the answer. "I am {F}. What is your name?" "I am {N}, and I like {animals} too." They
    talked all the way. When the bus came to {place}, {N} said, "Goodbye, {F}." "Goodbye, {N}," said {F}.

    {N} could not find the key. "{F}, do you know where my key is?" asked {N}. "No, I do not know," said {F}. They
    looked [on the table|under the bed|in every room]. Then {P} came with something in its mouth. It was the key!
    "Good {pet}," said {N}. "Thank you, {P}." And {F} laughed.

    Every {day}, {N} helps {his} neighbour {F} in the garden. {N} carries the water and {F} cuts the grass.
    Afterwards they sit under a tree, and {F} says, "Thank you, {N}." Then {F} goes in and brings {food}. {N} is
    always hungry after work.

    It was raining in {place}. {N} had no umbrella. "Take mine," said {F}. "And you, {F}?" asked {N}. "I live near
    here," said {F}. The next day, the sun was shining in {place}, and {N} brought the umbrella back to {F}. "Thank
    you, {F}," said {N}. "You are welcome, {N}," said {F}.

    {N} and {F} have the same birthday, in {month}. {N} lives in {place}, so they cannot always meet. But every
    {month} {F} calls {N}. "Happy birthday, {N}!" says {F}. "Happy birthday, {F}!" says {N}. This {month}, {N} is
    {age} years old.

    Three friends sat under a tree: {N}, {F} and {B}. {N} liked {like}, {F} liked {other}, and {B} did not say
    anything. "And what do you like, {B}?" asked {N}. "I like to hear your stories," said {B}. So {N} told a story
    about a {pet} named {P}. {F} and {B} listened, and at the end everybody knew {P}.

    {F} asked {N}, "What do you want to be one day?" {N} thought for a while. "I do not know, {F}. And you?" "I want
    to be {job}," said {F}. "I think that is a good plan, {F}," said {N}.

    "No, my name is not {B}," said {N}. "It is {N}." "I am sorry, {N}," said {F}. "I will remember it: {N}, not
    {B}." The next [day|time|{day}], {F} said, "Good morning, {N}!" and {N} smiled.

    "Do you live in {place}?" asked {F}. "Yes, {F}, I live in {place}," said {N}. "And do you like {like}?" "Yes, I
    like {like}." "Then you should meet {B}," said {F}. "{B} lives in {place} and likes {like} too." So {N} went to
    see {B}.
""")

EVERYDAY = blocks("""
    [Good morning|Good evening|Hello]! How are you today? I am [fine|well|very well], thank you. It
    is good to see you [again|here]. [Please come in and sit down|Have a nice day|See you soon].

    Today is {day}. I got up [early|late] and washed my [face|hands]. Then I [ate|had] {food} and drank {drink}.
    After that I went to [school|work|the market]. In the evening I came home and [read a book|helped my mother|went
    to bed].

    In {month} there is [much|not much] to do here. People [work in the fields|work at home|go for long walks|visit
    their friends]. The children [play together|learn for school|sing songs|help at home].

    My mother asked me to buy {food} and {food2}. I went to the shop. "I would like {food}, please," I said. "Here
    you are," said the shopkeeper. "Anything else?" "Yes, {food2}, please." I paid and said thank you.

    "What do you want to drink?" asked the [cook|waiter|guest]. "{Drink}, please." "Here you are. Would you like
    {food} too?" "No, thank you, I am not hungry."

    There is a [tree|bench|well|garden] in front of our house. In the [morning|evening], my brother sits there and
    [dreams of|draws|talks about] {animals}. He would like to see {animals} one day.

    I do not know what will happen tomorrow. Nobody knows it. I can only tell you what I know, and when I do not
    know something, I say so. That is [honest|the best way|better than a wrong answer].

    My friend asked me [for help|a question]. "Of course I will help you," I said. "What can I do for you?" "Can you
    [carry this bag|close the door|open the window|wait for me], please?" "Gladly," I said. "Thank you very much."
    "You are welcome."

    I like {like}, and my sister likes {other}. My father says that both are good. On {day} we have time for {like},
    and [tomorrow|next week] we will have time for {other}.

    Last {day} I was [tired|ill|sad|very busy]. Today I am [happy|well again|better]. I think tomorrow will be a
    good day. Thank you for asking.

    "What is the opposite of a question?" "An answer." "And what do you say when you do not know the answer?" "I
    say: I am sorry, I do not know."

    Please tell me your name. Then I can remember it. If you do not tell me your name, I cannot know it. If you tell
    me where you live and what you like, I will remember that [too|as well].
""")

SUM_WORDINGS = (
    "{words} is {result}.", "{signs} = {result}.", "{words} makes {result}.", "What is {words}? {words} is {result}.",
    "How much is {words}? It is {result}.", "What is {signs}? {signs} = {result}.", "{words} is {result}.",
)  # fmt: skip
ANSWERS = ("{question} {full}", "{full}")


def story(rng: Random) -> str:
    return write(rng.choice(STORIES), cast(rng), rng)


def everyday(rng: Random) -> str:
    values = cast(rng)
    food, food2 = rng.sample(world.FOODS, 2)
    drink = rng.choice(world.DRINKS)
    like, other = rng.sample((*world.GAMES, *world.ACTIVITIES), 2)
    values |= {"like": like, "other": other}
    values |= {"food": food, "food2": food2, "drink": drink, "Drink": drink.capitalize()}
    return write(rng.choice(EVERYDAY), values, rng)


def say(fact: Fact, rng: Random) -> str:
    """A fact, often after the first of its questions."""
    return rng.choice(ANSWERS).format(question=fact.questions[0], full=fact.full)


def mixed_facts(rng: Random) -> list[str]:
    """Every fact once, mixed, some to a paragraph."""
    return paragraphs([say(fact, rng) for fact in rng.sample(FACTS, len(FACTS))], rng)


def facts_by_topic(rng: Random) -> list[str]:
    """Every fact once, those of a topic together."""
    texts = []
    for topic in dict.fromkeys(fact.topic for fact in FACTS):
        facts = [fact for fact in FACTS if fact.topic == topic]
        texts += paragraphs([fact.full for fact in rng.sample(facts, len(facts))], rng)
    return texts


def paragraphs(sentences: list[str], rng: Random) -> list[str]:
    """Two to six of them to a paragraph."""
    texts = []
    while sentences:
        size = rng.randint(2, 6)
        texts.append(" ".join(sentences[:size]))
        sentences = sentences[size:]
    return texts


def say_sum(one: Sum, rng: Random) -> str:
    wording = rng.choice(SUM_WORDINGS)
    signs = one.signs.replace("x", rng.choice("xx*"))
    return wording.format(words=one.words, signs=signs, result=one.result)


def mixed_sums(rng: Random) -> list[str]:
    """Every sum once, mixed."""
    return paragraphs([say_sum(one, rng) for one in rng.sample(SUMS, len(SUMS))], rng)


def sum_rows(rng: Random) -> list[str]:
    """Every sum once, in rows: 3 plus 0, 3 plus 1, 3 plus 2 and so on."""
    rows: dict[tuple[int, str], list[str]] = {}
    for one in SUMS:
        rows.setdefault((one.a, one.op), []).append(f"{one.words} is {one.result}.")
    return [" ".join(row) for row in rows.values()]


THINGS = ("apples", "books", "cups", "pens", "flowers", "stones", "eggs", "bananas", "mangoes", "kites", "balls")


def told_sum(rng: Random) -> str:
    """A sum as something that happens: "Tolavir has 3 apples and gets 4 more." """
    one = rng.choice([one for one in SUMS if one.op != "x" and min(one.a, one.b, one.result) > 1])
    change = "gets {b} more" if one.op == "+" else "gives {b} away"
    template = "{N} has {a} {things} and " + change + ". {words} is {result}, so now {N} has {result} {things}."
    return template.format(N=seen_name(rng), things=rng.choice(THINGS), **one._asdict())
