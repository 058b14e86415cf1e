"""The program that makes a conversation: which act comes next, how long it goes on, and what stands before it."""

from collections.abc import Callable, Iterator
from random import Random

from data.chat.acts import knowing, reckoning, social, telling, translating
from data.chat.acts.slots import NAME
from data.chat.dialogue import Exchange, State, reply
from data.chat.dialogue_deck import Deck
from data.chat.names import Split

Messages = list[dict[str, str]]
Act = Callable[[State], Exchange | None]

NEPALI = 0.13  # of the conversations
SYSTEM = 0.5  # of the conversations have a system message
LENGTHS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
LENGTH_WEIGHTS = (6, 8, 10, 11, 12, 12, 12, 11, 9, 6, 3)
LONGEST = 1150  # characters of a conversation
SYSTEMS = (
    "You are a helpful assistant.", "You are a friendly assistant.", "You are a teacher for children.",
    "You speak English and Nepali.", "You are a small language model.", "Answer the user's questions.",
    "You help people who learn Nepali.",
)  # fmt: skip
SYSTEMS_NE = ("Answer in Nepali.", "Please answer in Nepali.", "नेपालीमा उत्तर दिनुहोस्।", "तपाईं एक सहयोगी हुनुहुन्छ।")
# What a system message asks of every reply. {v} is the user's name; where it is not said there, the user says it.
ASKED = {
    "brief": (
        "Be brief.", "Answer briefly.", "Keep your answers short.", "Give short answers.", "Short answers, please.",
        "Answer in as few words as you can.", "Be as brief as possible.", "Reply briefly.",
    ),
    "name": (
        "Use my name.", "Use the user's name.", "Always say the user's name.", "Call the user by name.",
        "The user's name is {v}. Use it.", "The user is called {v}. Use the name in your answers.",
        "Use the user's name, {v}.", "Call the user {v}.",
    ),
    "nepali": (
        "Answer in Nepali.", "Please answer in Nepali.", "Always answer in Nepali.", "Reply in Nepali.",
        "Only answer in Nepali.", "Answer every question in Nepali.", "नेपालीमा उत्तर दिनुहोस्।",
    ),
}  # fmt: skip
# What a system message is about: nothing of weight, something of the user, or what it asks of the replies.
KINDS = {"": 24, "fact": 12, "brief": 24, "name": 20, "nepali": 20}

# How often an act comes, where it is possible.
FREE: dict[Act, float] = {
    translating.translate: 1.9, translating.say: 0.25, translating.tell_translated: 0.03, telling.tell: 0.1,
    telling.tell_several: 0.05, telling.ask: 2.5, telling.ask_untold: 0.22, telling.correct: 0.35,
    telling.about_me: 0.05, knowing.fact: 0.36, reckoning.calculate: 0.5, reckoning.beyond: 0.12,
    knowing.unknowable_question: 0.28, knowing.cannot: 0.02, social.small_talk: 0.09, social.thank: 0.03,
    social.greet: 0.006,
}  # fmt: skip
FREE_NE: dict[Act, float] = {
    translating.translate: 0.15, telling.tell: 0.2, telling.ask: 0.8, telling.ask_untold: 0.13, telling.correct: 0.1,
    knowing.fact: 0.16, reckoning.calculate: 0.12, knowing.unknowable_question: 0.06, social.small_talk: 0.1,
    social.thank: 0.05,
}  # fmt: skip
IN_NEPALI: dict[Act, float] = {
    translating.translate: 0.2, telling.tell: 0.2, telling.ask: 0.5, telling.ask_untold: 0.13, telling.correct: 0.05,
    knowing.fact: 0.3, reckoning.calculate: 0.28, knowing.unknowable_question: 0.1, social.small_talk: 0.15,
    social.thank: 0.05,
}  # fmt: skip
# In the conversations themselves what is hard comes more often than in the questions of the base text: what has to be
# known by heart, sums above all where the answer is Nepali, and what was corrected.
BY_HEART: dict[Act, float] = {knowing.fact: 1.5, reckoning.calculate: 2.2, telling.correct: 2.2}
IN_DEVANAGARI = 1.6  # times as many sums again
# ... and where the user writes Nepali too, what cannot be known, and who the assistant is:
BY_HEART_NE: dict[Act, float] = {telling.ask_untold: 2.0, knowing.unknowable_question: 1.5, social.small_talk: 1.5}
CORRECTED = 0.5  # how often it is asked for; it is corrected at once so much more often:
AT_ONCE = 3
FIRST: dict[Act, float] = {social.greet: 0.08, telling.tell: 0.3, telling.tell_several: 0.2}
LAST: dict[Act, float] = {social.part: 0.08, social.thank: 0.06}
MANY_TOLD = 5  # after so much no more is told
LATE, LATE_ASKS = 6, 1.6  # from this exchange on, what was told, or not, is asked for so much more often: it is harder


def tell_name(state: State) -> Exchange | None:
    return telling.tell(state, ("name",))


def next_act(state: State, last: bool) -> Act:
    """What the user does next."""
    draw = state.rng.random()
    if state.sentence_at == state.count - 1 >= 0 and draw < 0.85:
        return translating.follow_up
    if state.system == "name" and "name" not in state.values and draw < 0.8:
        return tell_name
    for act, chance in (FIRST if state.count == 0 else LAST if last else {}).items():
        if draw < chance:
            return act
        draw -= chance
    table = dict(FREE_NE if state.nepali else IN_NEPALI if state.replies_in_nepali else FREE)
    if state.by_heart:
        table |= {act: table[act] * times for act, times in BY_HEART.items() if act in table}
        table[telling.ask_corrected] = CORRECTED if state.old else 0.0
        if state.replies_in_nepali:
            table[reckoning.calculate] *= IN_DEVANAGARI
        if state.nepali:
            table |= {act: table[act] * times for act, times in BY_HEART_NE.items()}
        if state.last_kind == "tell":
            table[telling.correct] *= AT_ONCE
    if last or len(state.values) >= MANY_TOLD:  # what is told last is never asked for
        table |= dict.fromkeys((telling.tell, telling.tell_several, translating.tell_translated), 0.0)
    elif len(state.values) > 2:
        table[telling.tell] *= 0.5
    elif not state.values:
        table[telling.tell] *= 2.5
    elif all(state.asked[key] for key in state.values):  # there is nothing new to ask for
        table[telling.tell] *= 3
        table[telling.ask] *= 0.6
    if state.last_kind == "translation":
        table[translating.translate] *= 1.3
    if state.count >= LATE:
        table[telling.ask] *= LATE_ASKS
        table[telling.ask_untold] *= LATE_ASKS
        if telling.ask_corrected in table:
            table[telling.ask_corrected] *= LATE_ASKS
    return state.rng.choices(list(table), list(table.values()))[0]


def step(state: State, act: Act) -> Exchange | None:
    """One act; the state moves on if there is something to say."""
    asked = state.last_slot
    exchange = act(state)
    if exchange is None:
        return None
    if state.last_slot == asked and exchange.kind not in ("tell", "correct", "recall", "unknown"):
        state.last_slot = ""
    state.last_kind, state.last, state.count = exchange.kind, exchange, state.count + 1
    return exchange


def begin(state: State, kind: str | None = None) -> Messages:
    """The system message, where there is one; of this kind (see KINDS), where that is given."""
    rng = state.rng
    if kind is None:
        if rng.random() >= SYSTEM:
            return []
        kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    if state.nepali and kind in ASKED:
        kind = ""
    if kind == "fact":
        return [{"role": "system", "content": telling.system_fact(state)}]
    if kind == "":
        return [{"role": "system", "content": rng.choice(SYSTEMS_NE if state.nepali else SYSTEMS)}]
    state.system, text = kind, rng.choice(ASKED[kind])
    if "{v}" in text:
        name = telling.new_value(state, NAME)
        telling.learn(state, NAME, name)
        text = text.format(v=name)
    return [{"role": "system", "content": text}]


def add(messages: Messages, exchange: Exchange, style: Random, state: State) -> None:
    messages.append({"role": "user", "content": exchange.user})
    answer = reply(exchange, style, state.system, state.values.get("name", ""))
    messages.append({"role": "assistant", "content": answer})


def start(split: Split, deck: Deck, seed: str, nepali: float = NEPALI) -> State:
    rng = Random(seed)
    return State(split, rng, deck, nepali=rng.random() < nepali)


def talk(state: State, messages: Messages, length: int, style: Random, ends: bool = True) -> list[Exchange]:
    """Let `length` exchanges follow, or fewer if the conversation becomes too long."""
    done: list[Exchange] = []
    while len(done) < length and sum(len(message["content"]) for message in messages) < LONGEST - 150:
        exchange = step(state, next_act(state, ends and len(done) == length - 1))
        if exchange is not None:
            add(messages, exchange, style, state)
            done.append(exchange)
    return done


def conversations(split: Split) -> Iterator[tuple[Messages, list[Exchange]]]:
    """Conversations without end, always the same, with the exchanges that they are made of."""
    deck, number = Deck(split, f"chat {split} deck"), 0
    while True:
        state, style = start(split, deck, f"chat {split} {number}"), Random(f"chat {split} style {number}")
        state.by_heart = split == "train"
        messages = begin(state)
        length = state.rng.choices(LENGTHS, LENGTH_WEIGHTS)[0]
        yield messages, talk(state, messages, length, style)
        number += 1
