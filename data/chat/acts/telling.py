"""Acts of memory: telling something, asking for it later, correcting it, and asking for what was never told."""

from collections.abc import Collection

from data.chat.acts import in_nepali, slots, slots_ne
from data.chat.acts.slots import Slot, capital
from data.chat.dialogue import BARE, Core, Exchange, State, typed

MEANT = ("No, I meant {v}.", "Sorry, I meant {v}.", "I meant {v}.", "No, {v}, not {old}.", "Oops, I meant {v}.",
         "I meant {v}, not {old}.", "Not {old}, {v}.", "No, I mean {v}.", "Wait, I meant to say {v}.")  # fmt: skip
MEANT_NE = ("होइन, {v}।", "माफ गर्नुहोस्, {v}।", "{old} होइन, {v}।")
ABOUT_ME = (
    "What do you know about me?", "What did I tell you about myself?", "Tell me what you know about me.",
    "What have you learned about me?", "What do you remember about me?", "Do you remember what I told you?",
    "Can you say what you know about me?",
)  # fmt: skip
TRIES = 50  # after so many, the value is taken although it is known
AGE = 1.0  # how much more often something is asked for with every exchange that has passed
CORRECTED = 2.5  # how much more often if it was corrected: that the later value holds is harder than that a value does
MOST = 4  # things in one message
APART = 0.4  # of these messages are several sentences
INTRODUCED = frozenset(("name", "place", "origin", "age", "job", "work", "like"))
MOST_SAID = 4  # things in an answer to "What do you know about me?"
NAMES = ("name", *(slot.key for slot in (*slots.RELATIVES, *slots.PETS)))  # slots whose values are names


def table(state: State) -> dict[str, Slot]:
    if state.nepali:
        return slots_ne.SLOTS
    return in_nepali.SLOTS if state.system == "nepali" else slots.SLOTS


def tone(state: State, name: str) -> str:
    """The tone in the language of the replies."""
    if not state.replies_in_nepali:
        return name
    return "ne " + {"untold": "unknown", "unknowable": "unknown"}.get(name, name)


def untold(state: State) -> list[Slot]:
    known = {key for group in slots.ONE_OF if not state.values.keys().isdisjoint(group) for key in group}
    return [slot for slot in table(state).values() if slot.key not in state.values and slot.key not in known]


def pick(state: State, candidates: list[Slot]) -> Slot:
    """A slot, the common ones more often."""
    return state.rng.choices(candidates, [slot.weight for slot in candidates])[0]


def pick_known(state: State, known: list[Slot]) -> Slot:
    """Something that was told: what is long ago, what was corrected, and what was not asked for yet, more often."""

    def weight(slot: Slot) -> float:
        age = 1 + AGE * (state.count - state.told_at[slot.key])
        corrected = CORRECTED if slot.key in state.old else 1.0
        return (1 + slot.weight) * age * corrected / (1 + state.asked[slot.key])

    return state.rng.choices(known, [weight(slot) for slot in known])[0]


def learn(state: State, slot: Slot, value: str) -> None:
    """Remember what was told."""
    state.values[slot.key], state.told_at[slot.key], state.asked[slot.key] = value, state.count, 0


def new_value(state: State, slot: Slot) -> str:
    """Something that nobody in this conversation has said of himself: two things that are equal teach nothing."""
    for _ in range(TRIES):
        value = slot.draw(state)
        if value not in state.values.values() and value not in state.old.values():
            break
    return value


def tell(state: State, keys: Collection[str] = ()) -> Exchange | None:
    """ "My name is Sita."; one of `keys` if they are given."""
    candidates = [slot for slot in untold(state) if not keys or slot.key in keys]
    if not candidates:
        return None
    slot = pick(state, candidates)
    value = new_value(state, slot)
    learn(state, slot, value)
    state.last_slot = slot.key
    noted, other = slot.note(value), slot.note(new_value(state, slot))
    wrong = (other,) if other.short != noted.short else ()
    return Exchange(
        typed(state.rng.choice(slot.tells), state.rng, v=value), "tell", tone(state, "told"), noted, (), wrong
    )


def tell_several(state: State) -> Exchange | None:
    """ "My name is Sita, I'm from Pokhara and I teach maths.", or the same in several sentences. Only in English."""
    if state.replies_in_nepali:
        return None
    told, yours, rng = [], [], state.rng
    apart = rng.random() < APART
    for _ in range(rng.choice((2, 2, 3, MOST))):
        slot = pick_of_several(state)
        value = new_value(state, slot)
        learn(state, slot, value)
        told.append(rng.choice(slot.tells if apart else slot.told).format(v=value))
        yours.append(slot.yours.format(v=value))
    state.last_slot = ""
    noted = Core("I see.", f"I will remember that {listing(yours)}.")
    user = " ".join(told) if apart else capital(listing(told)) + "."
    return Exchange(user[:-1] if rng.random() < BARE and user[-1] == "." else user, "tell", "told", noted)


def pick_of_several(state: State) -> Slot:
    """What is told together: first of all what people introduce themselves with."""
    candidates = untold(state)
    common = [slot for slot in candidates if slot.key in INTRODUCED]
    return pick(state, common if common and state.rng.random() < 0.6 else candidates)


def listing(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c" """
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def wrong_values(state: State, slot: Slot) -> list[str]:
    """Values that somebody could mistake for the right one: what it was before, other names, and one from nowhere."""
    right = state.values.get(slot.key)
    others = [state.values[key] for key in state.values if key in NAMES] if slot.key in NAMES else []
    before = [state.old[slot.key]] if slot.key in state.old else []
    return [value for value in (*before, *others, new_value(state, slot)) if value != right]


def ask(state: State, slot: Slot | None = None) -> Exchange | None:
    """ "What is my name?" after it was told."""
    again = state.last_slot if state.last_kind == "recall" else ""  # not the same twice in a row
    known = [one for key, one in table(state).items() if key in state.values and key != again]
    if slot is None and not known:
        return None
    slot = slot or pick_known(state, known)
    value = state.values[slot.key]
    wrong = (*(slot.answer(other) for other in wrong_values(state, slot)), slot.unknown)
    state.last_slot = slot.key
    state.asked[slot.key] += 1
    return Exchange(
        typed(state.rng.choice(slot.asks), state.rng), "recall", tone(state, "answer"), slot.answer(value),
        tuple(capital(text.format(v=value)) for text in slot.also), wrong,
    )  # fmt: skip


def ask_corrected(state: State) -> Exchange | None:
    """ "What is my name?" after it was told and corrected."""
    corrected = [slot for key, slot in table(state).items() if key in state.old]
    return ask(state, state.rng.choice(corrected))._replace(kind="correction") if corrected else None


def ask_about(state: State, keys: Collection[str]) -> Exchange | None:
    """A question for one of these slots, if any was told."""
    known = [slot for key, slot in table(state).items() if key in state.values and key in keys]
    return ask(state, pick_known(state, known)) if known else None


def ask_name(state: State) -> Exchange | None:
    """A question whose answer is a name."""
    return ask_about(state, NAMES)


def ask_untold(state: State) -> Exchange | None:
    """ "What is my name?" before it was told, though other names may have been."""
    liked = any(key.startswith("favourite") for key in state.values)  # then something is known of what the user likes
    candidates = [slot for slot in untold(state) if not (liked and slot.key == "like")]
    if not candidates:
        return None
    slot = pick(state, candidates)
    state.last_slot = slot.key
    wrong = tuple(slot.answer(value) for value in wrong_values(state, slot))
    return Exchange(
        typed(state.rng.choice(slot.asks), state.rng), "unknown", tone(state, "untold"), slot.unknown, (), wrong
    )


def correct(state: State) -> Exchange | None:
    """ "No, I meant Sita." just after something was told, or "Actually, my name is Sita." at any time."""
    told = [slot for key, slot in table(state).items() if key in state.values]
    if not told:
        return None
    just = state.last_slot if state.last_kind in ("tell", "correct") else ""
    slot = table(state)[just] if just else state.rng.choice(told)
    old, value = state.values[slot.key], new_value(state, slot)
    meant = MEANT_NE if state.nepali else MEANT
    template = state.rng.choice(meant if just and state.rng.random() < 0.6 else slot.corrections)
    state.old[slot.key] = old
    learn(state, slot, value)
    state.last_slot = slot.key
    wrong = (slot.understood(old),)
    user = typed(template, state.rng, v=value, old=old)
    return Exchange(user, "correct", tone(state, "told"), slot.understood(value), (), wrong)


def about_me(state: State) -> Exchange | None:
    """ "What do you know about me?": everything that was told, if it is little enough to be said in one sentence."""
    if state.replies_in_nepali or len(state.values) > MOST_SAID:
        return None
    question = typed(state.rng.choice(ABOUT_ME), state.rng)
    if not state.values:
        return Exchange(question, "unknown", "untold", Core("Nothing yet.", "You have not told me anything yet."))
    order = sorted(state.values, key=lambda key: state.told_at[key])
    told = [slots.SLOTS[key].yours.format(v=state.values[key]) for key in order]
    full = capital(listing(told)) + "."
    state.last_slot = ""
    return Exchange(question, "about", "answer", Core(full, full))


def system_fact(state: State) -> str:
    """A system message that tells something of the user, which is then known."""
    candidates = [slot for slot in table(state).values() if slot.theirs]
    slot = pick(state, candidates)
    value = new_value(state, slot)
    learn(state, slot, value)
    return capital(slot.theirs.format(v=value)) + slot.mark
