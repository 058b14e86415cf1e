"""Acts of reckoning: every spelling of the sums that are taught, and that it cannot do any other.

A sum is an expression ("7 plus 5", "seven and five", "7+5") in a question ("What is ...?", "... = ?"), or a request
("Add 7 and 5."). What is beyond the sums of facts.py is asked in the same words, so that only the numbers tell.
"""

from random import Random

from data.chat.acts.slots_ne import DIGITS
from data.chat.dialogue import Core, Exchange, State, typed
from data.chat.facts import SUMS, Sum, sums

EXPRESSIONS = {
    "+": ("{a} plus {b}", "{a} plus {b}", "{a} + {b}", "{a}+{b}", "{a} and {b}", "the sum of {a} and {b}"),
    "-": ("{a} minus {b}", "{a} minus {b}", "{a} - {b}", "{a}-{b}", "{a} take away {b}", "{a} less {b}"),
    "x": ("{a} times {b}", "{a} times {b}", "{a} x {b}", "{a}x{b}", "{a} * {b}", "{a}*{b}", "{a} × {b}",
          "{a} multiplied by {b}"),
    "/": ("{a} divided by {b}", "{a} / {b}", "{a}/{b}", "{a} : {b}", "{a} ÷ {b}"),
}  # fmt: skip
QUESTIONS = (
    "What is {e}?", "What is {e}?", "How much is {e}?", "{e} = ?", "{e}", "{e}", "{e}=", "{e}=?", "{e}?",
    "Calculate {e}.", "Can you calculate {e}?", "Tell me what {e} is.", "What does {e} make?", "What's {e}?",
    "whats {e}", "Do you know what {e} is?", "What do I get for {e}?", "Please calculate {e}.", "Work out {e}.",
)  # fmt: skip
NEXT = ("And {e}?", "And {e}?", "What about {e}?", "Now {e}.", "And how much is {e}?")
REQUESTS = {
    "+": ("Add {a} and {b}.", "Add {b} to {a}.", "Can you add {a} and {b}?", "What do I get if I add {a} and {b}?"),
    "-": ("Subtract {b} from {a}.", "Take {b} from {a}.", "What is left if I take {b} from {a}?"),
    "x": ("Multiply {a} by {b}.", "Multiply {a} and {b}.", "Can you multiply {a} by {b}?"),
    "/": ("Divide {a} by {b}.", "Can you divide {a} by {b}?"),
}
OTHERS = (
    "What is half of {a}?", "What is the square root of {a}?", "What is {a} squared?", "What is {b} percent of {a}?",
    "What is {a} to the power of {b}?", "What is {a} + {b} + {c}?", "What is a third of {a}?", "{a} + {b} - {c}",
)  # fmt: skip
NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
IN_WORDS, REQUEST, OTHER = 0.2, 0.15, 0.12  # of the sums are said with words for numbers; are requests; of another kind
TAUGHT = frozenset((one.a, one.op, one.b) for one in SUMS)
IN_NEPALI = {"+": "{a} र {b} जोड्दा {c} हुन्छ।", "-": "{a} बाट {b} घटाउँदा {c} हुन्छ।"}
CANNOT = Core("I cannot.", "I cannot calculate that.")
CANNOT_ALSO = ("I cannot do that.", "I have not learned to do that.", "I do not know.", "I do not know that.")


def asked(op: str, a: int, b: int, follows: bool, rng: Random) -> str:
    """A sum in one of its spellings, after another sum or not."""
    words = rng.random() < IN_WORDS and max(a, b) < len(NUMBERS)
    values = {"a": NUMBERS[a] if words else a, "b": NUMBERS[b] if words else b}
    if rng.random() < REQUEST:
        return typed(rng.choice(REQUESTS[op]), rng, **values)
    known = [each for each in EXPRESSIONS[op] if not words or (not set("+-*/:÷×") & set(each) and " x" not in each)]
    known = [each for each in known if not words or each != "{a}x{b}"]
    expression = rng.choice(known).format(**values)
    return typed(rng.choice(NEXT if follows else QUESTIONS), rng, e=expression)


def follows_sum(state: State) -> bool:
    return state.last_kind in ("sum", "beyond") and state.rng.random() < 0.5


def sum_answer(total: Sum, result: int) -> Core:
    return Core(f"{result}.", f"{total.words[0].upper()}{total.words[1:]} is {result}.")


def near(result: int) -> list[int]:
    """Results that are almost right."""
    return [result + step for step in (1, -1, 2, 10) if result + step >= 0]


def calculate(state: State) -> Exchange:
    if state.nepali or state.system == "nepali":
        return calculate_nepali(state)
    total = sums(state.rng)
    question = asked(total.op, total.a, total.b, follows_sum(state), state.rng)
    wrong = tuple(sum_answer(total, value) for value in near(total.result))
    also = (str(total.result), f"{total.signs} is {total.result}.", f"{total.signs} = {total.result}.")
    return Exchange(question, "sum", "answer", sum_answer(total, total.result), also, wrong)


def nepali_answer(total: Sum, result: int) -> Core:
    """ "१२।" and "७ र ५ जोड्दा १२ हुन्छ।" """
    numbers = {name: str(number).translate(DIGITS) for name, number in (("a", total.a), ("b", total.b), ("c", result))}
    return Core(f"{numbers['c']}।", IN_NEPALI[total.op].format(**numbers))


def calculate_nepali(state: State) -> Exchange:
    total = sums(state.rng)
    while total.op not in IN_NEPALI:
        total = sums(state.rng)
    core = nepali_answer(total, total.result)
    signs = total.signs.translate(DIGITS)
    words = core.full.rsplit(" ", 2)[0]
    question = state.rng.choice((f"{words} कति हुन्छ?", f"{signs} कति हुन्छ?"))
    if not state.nepali:
        question = asked(total.op, total.a, total.b, follows_sum(state), state.rng)
    wrong = tuple(nepali_answer(total, value) for value in near(total.result))
    return Exchange(question, "sum", "ne answer", core, (), wrong)


def beyond(state: State) -> Exchange | None:
    """A sum that is not taught: too large, below zero, or a division."""
    if state.replies_in_nepali:
        return None
    rng = state.rng
    op, a, b = beyond_taught(rng)
    if rng.random() < OTHER:
        question = typed(rng.choice(OTHERS), rng, a=a, b=b, c=rng.randint(1, 50))
    else:
        question = asked(op, a, b, follows_sum(state), rng)
    invented = a + b if op == "+" else abs(a - b) if op == "-" else a * b if op == "x" else a // b
    wrong = tuple(Core(f"{value}.", f"It is {value}.") for value in near(invented))
    return Exchange(question, "beyond", "unknowable", CANNOT, CANNOT_ALSO, wrong)


def beyond_taught(rng: Random) -> tuple[str, int, int]:
    """Numbers a little or far beyond what is taught."""
    while True:
        op = rng.choice("+++--xxx/")
        most = rng.choice((12, 20, 30, 100, 100, 1000, 10_000))
        a, b = rng.randint(0, most), rng.randint(1, rng.choice((10, 20, most)))
        if (a, op, b) not in TAUGHT and (op != "+" or (b, op, a) not in TAUGHT):
            return op, a, b
