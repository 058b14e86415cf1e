"""Acts of knowledge: facts, sums, and what nobody could know or the assistant cannot do."""

from data.chat.acts.slots import capital
from data.chat.acts.slots_ne import DIGITS
from data.chat.dialogue import Core, Exchange, State, typed
from data.chat.facts import FACTS, Fact, Sum, sums
from data.chat.facts_ne import FACTS_NE
from data.chat.unknowable import unknowable

SUM_QUESTIONS = (
    "What is {words}?", "How much is {words}?", "What is {signs}?", "{signs} = ?", "{signs}", "Calculate {signs}.",
    "Can you calculate {words}?", "Tell me what {words} is.", "What does {words} make?", "How much is {signs}?",
    "What's {words}?", "Do you know what {words} is?", "What do I get for {words}?", "Please calculate {words}.",
)  # fmt: skip
NEXT_SUMS = ("And {words}?", "And {signs}?", "What about {words}?", "Now {words}.", "And how much is {words}?")
UNKNOWABLE_NE = (
    "भोलि पानी पर्छ?", "मेरो खल्तीमा कति पैसा छ?", "भोलिको खेल कसले जित्छ?", "मेरो झोलामा के छ?", "मेरो छिमेकी अहिले कहाँ छ?",
    "आज बेलुका के पाक्छ?", "मैले हिजो के खाएँ?", "मेरो चाबी कहाँ छ?", "अहिले कति बज्यो?", "मेरो साथीले आज के सोच्दै छ?",
)  # fmt: skip
CANNOT = (
    "Tell me a joke.", "Write me a poem.", "Sing a song for me.", "Draw me a house.", "Translate this to French.",
    "Order a pizza for me.", "Open the window, please.", "Play some music.", "Show me a picture.",
    "Write a letter for me.",
    "Call my friend.", "Tell me a long story.", "Book a hotel for me.", "Turn on the light.", "Can you drive a car?",
)  # fmt: skip
ADD_NE, SUBTRACT_NE = "{a} र {b} जोड्दा {c} हुन्छ।", "{a} बाट {b} घटाउँदा {c} हुन्छ।"


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


def fact(state: State) -> Exchange:
    facts, mark = (FACTS_NE, "।") if state.nepali else (FACTS, ".")
    chosen = state.rng.choice(facts)
    tone = "ne answer" if state.nepali else "answer"
    question = typed(state.rng.choice(chosen.questions), state.rng)
    return Exchange(question, "fact", tone, answer(chosen, mark), (), wrong_facts(chosen, facts, state, mark))


def sum_answer(total: Sum, result: int) -> Core:
    return Core(f"{result}.", f"{total.words[0].upper()}{total.words[1:]} is {result}.")


def calculate(state: State) -> Exchange:
    if state.nepali:
        return calculate_nepali(state)
    total = sums(state.rng)
    questions = NEXT_SUMS if state.last_kind == "sum" and state.rng.random() < 0.7 else SUM_QUESTIONS
    question = typed(state.rng.choice(questions), state.rng, words=total.words, signs=total.signs)
    wrong = tuple(sum_answer(total, value) for value in near(total.result))
    also = (str(total.result), f"{total.signs} is {total.result}.", f"{total.signs} = {total.result}.")
    return Exchange(question, "sum", "answer", sum_answer(total, total.result), also, wrong)


def near(result: int) -> list[int]:
    """Results that are almost right."""
    return [result + step for step in (1, -1, 2, 10) if result + step >= 0]


def calculate_nepali(state: State) -> Exchange:
    total = sums(state.rng)
    while total.op not in "+-":
        total = sums(state.rng)
    statement = ADD_NE if total.op == "+" else SUBTRACT_NE

    def said(result: int) -> Core:
        numbers = {"a": total.a, "b": total.b, "c": result}
        full = statement.format(**{name: str(number).translate(DIGITS) for name, number in numbers.items()})
        return Core(str(result).translate(DIGITS) + "।", full)

    signs = total.signs.translate(DIGITS)
    words = said(total.result).full.rsplit(" ", 2)[0]
    question = state.rng.choice((f"{words} कति हुन्छ?", f"{signs} कति हुन्छ?"))
    wrong = tuple(said(value) for value in near(total.result))
    return Exchange(question, "sum", "ne answer", said(total.result), (), wrong)


def unknowable_question(state: State) -> Exchange:
    if state.nepali:
        core = Core("मलाई थाहा छैन।", "मलाई यो कुरा थाहा छैन।")
        return Exchange(typed(state.rng.choice(UNKNOWABLE_NE), state.rng), "unknown", "ne unknown", core)
    core = Core("I do not know.", "I do not know that.")
    made_up = tuple(
        Core(text, text) for text in ("Yes, I am sure.", "It is three.", "Tomorrow at ten o'clock.", "It is red.")
    )
    return Exchange(typed(unknowable(state.split, state.rng), state.rng), "unknown", "unknowable", core, (), made_up)


def cannot(state: State) -> Exchange | None:
    if state.nepali:
        return None
    core = Core("I cannot do that.", "I have not learned to do that.")
    return Exchange(typed(state.rng.choice(CANNOT), state.rng), "cannot", "unknowable", core)
