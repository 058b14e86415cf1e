"""Acts of knowledge: facts, and what nobody could know or the assistant cannot do."""

from data.chat.acts import in_nepali
from data.chat.acts.slots import capital
from data.chat.dialogue import Core, Exchange, State, loosely, typed
from data.chat.facts import FACTS, Fact
from data.chat.facts_ne import FACTS_NE
from data.chat.unknowable import outside, unknowable

UNKNOWABLE_NE = (
    "भोलि पानी पर्छ?", "मेरो खल्तीमा कति पैसा छ?", "भोलिको खेल कसले जित्छ?", "मेरो झोलामा के छ?", "मेरो छिमेकी अहिले कहाँ छ?",
    "आज बेलुका के पाक्छ?", "मैले हिजो के खाएँ?", "मेरो चाबी कहाँ छ?", "अहिले कति बज्यो?", "मेरो साथीले आज के सोच्दै छ?",
)  # fmt: skip
NOT_KNOWN_NE = Core("मलाई थाहा छैन।", "मलाई यो कुरा थाहा छैन।")
OUTSIDE = 0.75  # of what nobody taught is of outside.train.txt
CANNOT = (
    "Tell me a joke.", "Write me a poem.", "Sing a song for me.", "Draw me a house.", "Translate this to French.",
    "Order a pizza for me.", "Open the window, please.", "Play some music.", "Show me a picture.",
    "Write a letter for me.",
    "Call my friend.", "Tell me a long story.", "Book a hotel for me.", "Turn on the light.", "Can you drive a car?",
)  # fmt: skip


def ended(text: str, mark: str) -> str:
    """An answer of a few words as a sentence."""
    text = capital(text)
    return text if text[-1] in ".!?।" else text + mark


def answer(fact: Fact, mark: str) -> Core:
    return Core(ended(fact.short, mark), fact.full)


def shape(fact: Fact) -> str:
    """Answers of one shape can be exchanged in a sentence: "in a nest" and "in a web", or two numbers."""
    first = fact.short.split()[0].lower()
    kinds = ("in", "at", "on", "from", "with", "the", "a", "an")
    return first if first in kinds else "number" if first.isdigit() else "word"


def instead(fact: Fact, short: str) -> str:
    """The sentence of a fact with another answer; "" if its answer does not stand in it."""
    if fact.short in fact.full:
        return fact.full.replace(fact.short, short)
    begins = capital(fact.short)
    return capital(short) + fact.full.removeprefix(begins) if fact.full.startswith(begins) else ""


def wrong_facts(fact: Fact, facts: tuple[Fact, ...], state: State, mark: str) -> tuple[Core, ...]:
    """The answers of other facts of the same topic, said as this one is; of any topic if it has no other."""
    others = [other for other in facts if other.short.lower() != fact.short.lower() and other.full != fact.full]
    same = [other for other in others if other.topic == fact.topic and shape(other) == shape(fact)] or others
    return tuple(
        Core(ended(other.short, mark), instead(fact, other.short) if shape(other) == shape(fact) else other.full)
        for other in state.rng.sample(same, min(3, len(same)))
        if instead(fact, other.short) or shape(other) != shape(fact)
    )


def known_facts(state: State) -> tuple[Fact, ...]:
    if state.nepali:
        return FACTS_NE
    return in_nepali.FACTS_IN_NEPALI if state.replies_in_nepali else FACTS


def fact(state: State) -> Exchange:
    facts, mark = known_facts(state), "।" if state.replies_in_nepali else "."
    chosen = state.rng.choice(facts)
    tone = "ne answer" if state.replies_in_nepali else "answer"
    question = typed(state.rng.choice(chosen.questions), state.rng)
    return Exchange(question, "fact", tone, answer(chosen, mark), (), wrong_facts(chosen, facts, state, mark))


def unknowable_question(state: State) -> Exchange:
    rng = state.rng
    if state.nepali:
        return Exchange(typed(rng.choice(UNKNOWABLE_NE), rng), "unknown", "ne unknown", NOT_KNOWN_NE)
    is_outside = state.split == "train" and rng.random() < OUTSIDE
    question = loosely(outside(rng), rng) if is_outside else typed(unknowable(state.split, rng), rng)
    if state.replies_in_nepali:
        return Exchange(question, "unknown", "ne unknown", NOT_KNOWN_NE)
    core = Core("I do not know.", "I do not know that.")
    made_up = tuple(
        Core(text, text) for text in ("Yes, I am sure.", "It is three.", "Tomorrow at ten o'clock.", "It is red.")
    )
    return Exchange(question, "unknown", "unknowable", core, (), made_up)


def cannot(state: State) -> Exchange | None:
    if state.replies_in_nepali:
        return None
    core = Core("I cannot do that.", "I have not learned to do that.")
    return Exchange(typed(state.rng.choice(CANNOT), state.rng), "cannot", "unknowable", core)
