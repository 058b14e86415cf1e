"""Exercises on learning from rewards and preferences: advantages, PPO's loss, DPO's, and how far a model has moved."""

import numpy as np

from toolkit.exercises.exercise import Arguments, Exercise, Mistake
from toolkit.functional.losses import clipped_policy, clipped_policy_backward, preference_loss, preference_loss_backward
from toolkit.preference.ppo import advantages_of

T, N = 6, 12


def one_reply(rng: np.random.Generator) -> Arguments:
    """Small rewards for every token, and that of the whole reply for the last."""
    rewards = 0.1 * rng.standard_normal(T)
    rewards[-1] += 1
    return rewards, rng.standard_normal(T), float(rng.uniform(0.8, 0.95)), float(rng.uniform(0.6, 0.9))


def _errors(rewards, values, gamma, after=0.0):
    return rewards + gamma * np.append(values[1:], after) - values


def _backwards(errors, decay):
    return np.array([sum(error * decay**i for i, error in enumerate(errors[step:])) for step in range(len(errors))])


ADVANTAGES = Exercise(
    "advantages", "What a token was worth", advantages_of, one_reply, ("advantages",),
    (
        "First the errors of the critic: δ_t = r_t + γ V_t+1 - V_t, what came and what is expected now, less what was "
        "expected before. After the last token V is 0.",
        "A token also gets a share of the later errors, the less the later they are: γλ for each step between.",
        "A_t = δ_t + γλ A_t+1, from the last token to the first; after the last one A is 0.",
    ),
    "toolkit/preference/ppo.py: advantages_of",
    (
        Mistake(lambda r, v, gamma, lam: _backwards(_errors(r, v, gamma, after=v[-1]), gamma * lam),
            "after the last token comes nothing: the value there is 0, not the last value once more"),
        Mistake(lambda r, v, gamma, lam: _backwards(_errors(r, v, gamma, after=v[0]), gamma * lam),
            "after the last token comes nothing: the value there is 0, but np.roll goes round to the first one"),
        Mistake(lambda r, v, gamma, lam: _errors(r, v, gamma),
            "these are the errors δ_t alone (as with λ = 0): what comes later counts as well, A_t = δ_t + γλ A_t+1"),
        Mistake(lambda r, v, gamma, lam: _backwards(_errors(r, v, gamma), gamma),
            "λ is missing: from step to step both γ and λ make later errors count less"),
        Mistake(lambda r, v, gamma, lam: _backwards(_errors(r, v, gamma)[::-1], gamma * lam)[::-1],
            "it is added up from the front: a token answers for what comes after it; go from the last to the first"),
        Mistake(lambda r, v, gamma, lam: advantages_of(r, v, gamma, lam) + v,
            "these are the returns that the critic learns, A + V: the advantage is what exceeds the value"),
    ),
    {"T": T}, points=2,
)  # fmt: skip


def ratios_on_both_sides(rng: np.random.Generator) -> Arguments:
    """Ratios below, inside and above the clip's range, with advantages of both signs."""
    ratio = np.array([0.5, 0.65, 0.9, 1.1, 1.4, 1.7] * 2) + rng.uniform(-0.05, 0.05, N)
    advantage = rng.uniform(0.3, 2, N) * np.repeat([1, -1], N // 2)
    order = rng.permutation(N)
    return ratio[order], advantage[order], 0.2


def clipped_objective(ratio, advantage, clip):
    sums, saved = clipped_policy(np.log(ratio), np.zeros_like(ratio), advantage, clip)
    # The toolkit's gradient is that of log ratio.
    return sums.loss / len(ratio), lambda: clipped_policy_backward(1 / len(ratio), saved)[0] / ratio


def _objective(chosen, counts, sign=1):
    """Make a wrong objective, the mean of chosen(plain, limited); counts: where (or how much) A is felt."""

    def objective(ratio, advantage, clip):
        plain, limited = ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage
        slope = sign * advantage * counts(plain, limited, ratio) / len(ratio)
        return -sign * chosen(plain, limited).mean(), lambda: -slope

    return objective


CLIPPED_OBJECTIVE = Exercise(
    "clipped_objective", "PPO's loss and its gradient", clipped_objective, ratios_on_both_sides, ("loss", "dratio"),
    (
        "The smaller of two products for each token: r A, and A times r clipped to 1 - clip … 1 + clip. The loss is "
        "their mean with the sign turned.",
        "Where the smaller one is r A, its slope is A. Where it is the clipped one, and less than r A, r moves "
        "nothing: 0. Which one it is depends on the sign of A too.",
        "loss = -mean(min(r A, clip(r) A)); dratio = -A / N where r A <= clip(r) A, and 0 elsewhere.",
    ),
    "toolkit/functional/losses.py: clipped_policy",
    (
        Mistake(_objective(lambda plain, limited: limited, lambda plain, limited, ratio: plain == limited),
            "the minimum is missing: with the clip alone nothing brings back what went the wrong way (r high, A < 0)"),
        Mistake(_objective(np.maximum, lambda plain, limited, ratio: plain >= limited),
            "it is the larger of the two: take the smaller one, so that what the clip would gain is not counted"),
        Mistake(_objective(np.minimum, lambda plain, limited, ratio: plain <= limited, sign=-1),
            "the sign is the opposite: a loss is lowered, so it is the mean of -min"),
        Mistake(_objective(np.minimum, lambda plain, limited, ratio: 1.0),
            "the clip does not stop the gradient: where the clipped product is the smaller one, dratio is 0"),
        Mistake(_objective(np.minimum, lambda plain, limited, ratio: plain == limited),
            "the gradient is 0 wherever r is out of range: only where the clipped product is the smaller one it is 0"),
        Mistake(_objective(np.minimum, lambda plain, limited, ratio: ratio * (plain <= limited)),
            "that is the gradient of the log-probability, r times as large: here it is that of the ratio"),
    ),
    {"N": N}, has_back=True, points=2,
)  # fmt: skip


def pairs_of_replies(rng: np.random.Generator) -> Arguments:
    """Log-probabilities of pairs of replies, of which two have gone so far that exp overflows."""
    chosen_before, rejected_before = -40 - 5 * rng.standard_normal((2, T))
    chosen, rejected = chosen_before + rng.standard_normal(T), rejected_before + rng.standard_normal(T)
    chosen[1] -= 4000
    rejected[3] -= 4000
    return chosen, rejected, chosen_before, rejected_before, float(rng.uniform(0.3, 0.8))


def dpo_loss(chosen, rejected, chosen_before, rejected_before, beta):
    loss, saved = preference_loss(chosen - chosen_before, rejected - rejected_before, beta)
    return loss / len(chosen), lambda: preference_loss_backward(1 / len(chosen), saved)


def _push(z, beta):
    return beta * np.exp(-np.logaddexp(0, z))


def _dpo(push=_push, losses=lambda z: np.logaddexp(0, -z), before=1, opposite=1):
    """Make a wrong loss: losses and push (how hard both sides are moved) of z = beta · margin."""

    def dpo(chosen, rejected, chosen_before, rejected_before, beta):
        z = beta * (chosen - rejected - before * (chosen_before - rejected_before))
        with np.errstate(all="ignore"):
            loss, dmargin = losses(z).mean(), -push(z, beta) / len(z)
        return loss, lambda: (dmargin, -opposite * dmargin)

    return dpo


DPO_LOSS = Exercise(
    "dpo_loss", "Learning from pairs: DPO", dpo_loss, pairs_of_replies, ("loss", "dchosen", "drejected"),
    (
        "margin = (chosen - chosen_before) - (rejected - rejected_before): by how much more the chosen reply has "
        "gained than the other.",
        "-log σ(z) = log(1 + exp(-z)), and np.logaddexp(0, -z) computes that without overflow. Its slope is -σ(-z), "
        "which can be written exp(-logaddexp(0, z)).",
        "loss = mean of logaddexp(0, -beta · margin); dchosen = -beta σ(-beta · margin) / N, drejected = -dchosen.",
    ),
    "toolkit/functional/losses.py: preference_loss; toolkit/preference/dpo.py",
    (
        Mistake(_dpo(losses=lambda z: -np.log(1 / (1 + np.exp(-z)))),
            "the loss is inf where a pair is far on the wrong side: σ is 0 there, its log -inf; use np.logaddexp"),
        Mistake(_dpo(lambda z, beta: beta * np.exp(-z) / (1 + np.exp(-z))),
            "the gradient is inf / inf where a pair is far on the wrong side: write σ(-z) as exp(-logaddexp(0, z))"),
        Mistake(_dpo(before=0),
            "the log-probabilities before are missing: a reply that was probable from the start has gained nothing"),
        Mistake(_dpo(lambda z, beta: _push(z, 1.0)),
            "the gradient lacks beta: the loss is a function of beta · margin (chain rule)"),
        Mistake(_dpo(opposite=-1),
            "drejected has the sign of dchosen: the margin falls where the rejected reply gains"),
        Mistake(_dpo(lambda z, beta: _push(-z, beta)),
            "the gradient is large where the pair is right already: the slope of -log σ(z) is -σ(-z) = -(1 - σ(z))"),
    ),
    {"N": T}, has_back=True, points=2,
)  # fmt: skip


def log_probs_of_two(rng: np.random.Generator) -> Arguments:
    now = -rng.gamma(2.0, 1.0, N)
    return now, now + 0.7 * rng.standard_normal(N)


def kl_estimate(log_probs, log_probs_before):
    difference = log_probs_before - log_probs
    return float((np.expm1(difference) - difference).mean())


def _estimate(formula):
    return lambda log_probs, log_probs_before: float(formula(log_probs_before - log_probs))


KL_ESTIMATE = Exercise(
    "kl_estimate", "How far a model has moved", kl_estimate, log_probs_of_two, ("kl",),
    (
        "d = log_probs_before - log_probs for each token. exp(d) is on average 1, so exp(d) - 1 may be added to -d: "
        "the mean stays, and the chance becomes less.",
        "The mean over the tokens of exp(d) - 1 - d, which is at no token below 0.",
    ),
    "toolkit/functional/losses.py: clipped_policy, `divergence` (of tokens of the old policy: d is now - before there)",
    (
        Mistake(_estimate(lambda d: (np.exp(-d) - 1 + d).mean()),
            "d has the wrong sign: the model of now wrote the tokens, so exp(d) is 1 on average for d = before - now"),
        Mistake(_estimate(lambda d: -d.mean()),
            "that is the mean of now - before: right on average, but of either sign for a token; add exp(d) - 1"),
        Mistake(_estimate(lambda d: (d**2).mean() / 2),
            "that is d² / 2, which is near only where d is small: exp(d) - 1 - d has the right mean everywhere"),
        Mistake(_estimate(lambda d: np.expm1(d).mean()),
            "d is to be taken away: exp(d) - 1 alone is 0 on average, however far the model has moved"),
        Mistake(_estimate(lambda d: (np.expm1(d) - d).sum()), "it is the sum: take the mean over the tokens"),
        Mistake(_estimate(lambda d: np.expm1(d.mean()) - d.mean()),
            "the mean is taken too early: exp of a mean is not the mean of exp; first estimate each token by itself"),
    ),
    {"N": N},
)  # fmt: skip

PREFERRING = (ADVANTAGES, CLIPPED_OBJECTIVE, DPO_LOSS, KL_ESTIMATE)
