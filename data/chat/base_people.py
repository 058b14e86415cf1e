"""Little English portraits of people: in every one the same names, places and things come again and again.

Nearly every name is new, so whoever wants to foretell the second mention has to look at the first. What is said about a
person is asked and told again; what somebody says as "I" is given back as "you".
"""

from random import Random

from data.chat import free_values, world
from data.chat.names import is_female, name, pet_name
from data.chat.writing import lines, write

# topic: (what is said, what comes again)
PORTRAIT = {
    "place": ("""
        {N} lives in {place}.
        {N} comes from {place} and [still lives there|lives there to this day].
        The home of {N} is in {place}.
        {N} has a [small|large|white|quiet] house in {place}.
        {N} was born in {place} and lives there with {his} family.
        In {place} everybody knows {N}, for {he} lives there.
    """, """
        Where does {N} live? {N} lives in {place}.
        Where is the home of {N}? It is in {place}.
        Who lives in {place}? {N} lives there.
        If you want to visit {N}, you have to go to {place}.
        When guests come to {place}, {N} shows them everything.
        {N} says, "I live in {place}."
        So {N} is at home in {place}.
    """),
    "like": ("""
        {N} likes {like}.
        {N} likes {like} very much.
        {N} likes {like} more than anything else.
        What {N} likes best is {like}.
        Everybody knows that {N} likes {like}.
        {N} has always liked {like}, and {other} too.
        {N} likes {like}, but not {other}.
    """, """
        What does {N} like? {N} likes {like}.
        Who likes {like}? {N} likes {like}.
        If you ask {N}, {he} says, "I like {like}."
        Yes, it is {N} who likes {like}.
        It is true that {N} likes {like}.
        {F} likes {like} as well, so {N} and {F} understand each other.
    """),
    "pet": ("""
        {N} has a {pet} named {P}.
        {N} has a {pet}, and its name is {P}.
        The {pet} of {N} is called {P}.
        {N} and the {pet} {P} are always together.
        {P} is a [young|clever|brave|lazy] {pet} and belongs to {N}.
        {N} found a small {pet} and called it {P}.
    """, """
        What is the name of the {pet}? Its name is {P}.
        Who is {P}? {P} is the {pet} of {N}.
        Whose {pet} is {P}? It is {N}'s {pet}.
        Every evening {N} calls, "{P}! {P}!" and the {pet} comes.
        {N} says, "My {pet} is called {P}."
        {P} is hungry, so {N} gives {P} something to eat.
        {P} loves {N}, and {N} loves {P}.
    """),
    "friend": ("""
        {N} has a friend named {F}.
        The best friend of {N} is {F}.
        {N} and {F} are good friends.
        {N} often meets {F}.
        {F} is a friend of {N}.
    """, """
        Who is the friend of {N}? It is {F}.
        What is the name of {N}'s friend? The name of {N}'s friend is {F}.
        {N} has known {F} for [two|three|five|ten] years.
        {N} writes to {F}, and {F} writes to {N}.
        {F} says, "{N} is my best friend."
        {N} thinks of {F} every day.
    """),
    "colour": ("""
        {N}'s favourite colour is {colour}.
        The colour that {N} likes best is {colour}.
        {N} often wears {colour} [clothes|shoes|shirts].
    """, """
        What is {N}'s favourite colour? It is {colour}.
        Which colour does {N} like best? {N} likes {colour} best.
        So the colour of {N} is {colour}.
    """),
    "age": ("""
        {N} is {age} years old.
        {N} is now {age} years old.
        Last [week|month|{day}] {N} had a birthday and is now {age} years old.
    """, """
        How old is {N}? {N} is {age} years old.
        Yes, {N} is {age} years old.
    """),
    "job": ("""
        {N} is {job}.
        {N} works as {job}.
        {N} has a good job: {N} is {job}.
    """, """
        What does {N} do for a living? {N} is {job}.
        {N} says, "I am {job}."
        So {N} is {job}.
    """),
    "animal": ("""
        {N}'s favourite animals are {animals}.
        The animals that {N} likes best are {animals}.
    """, """
        Which animals does {N} like best? {N} likes {animals} best.
        What are {N}'s favourite animals? They are {animals}.
    """),
    "birthday": ("""
        {N}'s birthday is in {month}.
        {N} was born in {month}.
    """, """
        When is the birthday of {N}? It is in {month}.
        In which month was {N} born? {N} was born in {month}.
    """),
}  # fmt: skip
OPENINGS = lines("""
    This is {N}.
    This is a story about {N}.
    Let me tell you about {N}.
    Do you know {N}?
    Here you can read about {N}.
    I know somebody whose name is {N}.
    There is somebody named {N}.
    Today I met {N}.
""")

# topic: (in the first person, in the second person, a question and its answer)
MINE = {
    "name": ("My name is {N}.|I am {N}.|I am called {N}.|Everybody calls me {N}.", "your name is {N}|you are {N}",
             "What is my name? My name is {N}.|Who am I? I am {N}.|What is your name? Your name is {N}."),
    "place": ("I live in {place}.|My home is in {place}.|I come from {place}.", "you live in {place}",
              "Where do I live? I live in {place}.|Where do you live? You live in {place}."),
    "like": ("I like {like}.|I like {like} very much.|I really like {like}.", "you like {like}",
             "What do I like? I like {like}.|What do you like? You like {like}."),
    "pet": ("I have a {pet} named {P}.|My {pet} is called {P}.|The name of my {pet} is {P}.",
            "your {pet} is called {P}|you have a {pet} named {P}|your {pet}'s name is {P}",
            "What is the name of my {pet}? The name of my {pet} is {P}."
            "|What is your {pet} called? Your {pet} is called {P}."),
    "friend": ("I have a friend named {F}.|My best friend is {F}.|My friend's name is {F}.",
               "your friend's name is {F}|your friend is {F}|you have a friend named {F}",
               "Who is my friend? My friend is {F}.|What is your friend's name? Your friend's name is {F}."),
    "kin": ("My {kin}'s name is {B}.|I have a {kin} named {B}.|My {kin} is called {B}.",
            "your {kin}'s name is {B}|your {kin} is called {B}",
            "What is the name of my {kin}? The name of my {kin} is {B}."
            "|What is your {kin}'s name? Your {kin}'s name is {B}."),
    "colour": ("My favourite colour is {colour}.|I like {colour} best of all colours.",
               "your favourite colour is {colour}",
               "What is my favourite colour? My favourite colour is {colour}."
               "|What is your favourite colour? Your favourite colour is {colour}."),
    "age": ("I am {age} years old.", "you are {age} years old",
            "How old am I? I am {age} years old.|How old are you? You are {age} years old."),
    "job": ("I am {job}.|I work as {job}.", "you are {job}|you work as {job}",
            "What is my job? I am {job}.|What do you do? You are {job}."),
}  # fmt: skip
LISTENERS = "[my neighbour|my teacher|the guest|the driver|my friend|the old man|the old woman|the doctor]"


def cast(rng: Random) -> dict[str, object]:
    """Who a text is about and what there is to say."""
    people: list[str] = []
    while len(people) < 3:
        drawn = name("train", rng)
        if drawn not in people:
            people.append(drawn)
    female = is_female(people[0], rng)
    age = rng.choice(world.AGES) if rng.random() < 0.5 else rng.randint(5, 20)
    like = other = free_values.like("train", rng)
    while other == like:
        other = free_values.like("train", rng)
    return {
        "N": people[0], "F": people[1], "B": people[2], "P": pet_name("train", rng), "pet": rng.choice(world.PETS),
        "he": "she" if female else "he", "his": "her" if female else "his", "him": "her" if female else "him",
        "He": "She" if female else "He", "place": free_values.place("train", rng), "like": like, "other": other,
        "food": rng.choice(world.FOODS), "colour": rng.choice(world.COLOURS), "animals": rng.choice(world.ANIMALS),
        "age": age, "job": free_values.job("train", rng), "day": rng.choice(world.DAYS),
        "month": rng.choice(world.MONTHS), "kin": kin(is_female(people[2], rng), age, rng),
    }  # fmt: skip


def kin(female: bool, age: int, rng: Random) -> str:
    children = (("daughter",) if female else ("son",)) if age >= 40 else ()
    return rng.choice((*children, *(("sister", "aunt") if female else ("brother", "uncle"))))


def fitting(topics: list[str], values: dict[str, object]) -> list[str]:
    """Only grown-ups have a job."""
    return [topic for topic in topics if topic != "job" or values["age"] > 20]


def portrait(rng: Random) -> str:
    """Some things about a person, then some of them again, in another order."""
    values = cast(rng)
    topics = ["place", "like", "pet", *rng.sample(fitting(list(PORTRAIT)[3:], values), rng.choice((1, 2)))]
    topics = rng.sample(topics, rng.choice((2, 3, 3, 4)))
    said = [rng.choice(lines(PORTRAIT[topic][0])) for topic in topics]
    again = [rng.choice(lines(PORTRAIT[topic][1])) for topic in rng.sample(topics, rng.choice((1, 2, len(topics))))]
    opening = [rng.choice(OPENINGS)] if rng.random() < 0.5 else []
    return " ".join(write(template, values, rng) for template in (*opening, *said, *again))


def i_and_you(rng: Random) -> str:
    """Somebody tells about herself or himself, and a listener, or a question, gives some of it back."""
    values = cast(rng)
    topics = ["name", *rng.sample(fitting(list(MINE)[1:], values), rng.choice((1, 2, 3)))]
    said = [rng.choice(MINE[topic][0].split("|")) for topic in topics]
    asked = rng.sample(topics, rng.choice((1, 2)))
    if rng.random() < 0.5:
        back = [rng.choice(MINE[topic][2].split("|")) for topic in asked]
        told = " ".join((*said, *back))
    else:
        given = " and ".join(rng.choice(MINE[topic][1].split("|")) for topic in asked)
        listener = write(LISTENERS, values, rng)
        answer = f'{upper(listener)} [remembered|repeated|said]: "{upper(given)}."'
        told = f'I said to {listener}, "{" ".join(said)}" {answer}'
    return write(told, values, rng)


def upper(text: str) -> str:
    """With a capital; a slot at the beginning stays as it is."""
    return text[0].upper() + text[1:]


PAIRS = (
    ("lives in", "live in", "Where does {N} live?", "place"),
    ("likes", "like", "What does {N} like?", "like"),
)  # fmt: skip


def two_people(rng: Random) -> str:
    """Two people of whom different things are true: a question has to look at the right one."""
    one, two = cast(rng), cast(rng)
    while one["N"] == two["N"] or one["place"] == two["place"] or one["like"] == two["like"]:
        two = cast(rng)
    does, do, question, slot = rng.choice(PAIRS)
    people = [one, two]
    said = [f"{who['N']} {does} {who[slot]}" for who in people]
    joined = rng.choice((" and ", ", but ", ". ")).join(said) + "."
    rng.shuffle(people)
    answers = [f"{question.format_map(who)} {who['N']} {does} {who[slot]}." for who in people[: rng.choice((1, 2))]]
    who = rng.choice(people)
    more = [f"Who {does} {who[slot]}? {who['N']} {does} {who[slot]}."] if rng.random() < 0.5 else []
    both = [f"{one['N']} and {two['N']} do not {do} the same {'town' if slot == 'place' else 'things'}."]
    return " ".join((joined, *answers, *more, *(both if rng.random() < 0.2 else ())))
