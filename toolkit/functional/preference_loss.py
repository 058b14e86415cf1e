"""The loss of a preference between two scores: Bradley and Terry's model (1952) of who wins a comparison."""

import numpy as np

from toolkit.functional.arrays import Array, Saved


def preference_loss(chosen: Array, rejected: Array, scale: float = 1.0) -> tuple[float, Saved]:
    """How unlikely it was that the chosen one of each pair was preferred, if scores decide with some chance:

        m = scale · (chosen - rejected)        loss = Σ -log σ(m) = Σ log(1 + exp(-m))

    A reward model's loss with its rewards and scale 1 (Stiennon et al. 2020, section 3.4; Ouyang et al. 2022, eq. 1);
    that of direct preference optimization with log-ratios to the reference and scale β (Rafailov et al. 2023, eq. 7).
    Shapes: both (B,) -> a number.
    """
    margins = (chosen - rejected) * scale
    losses = np.logaddexp(0, -margins)  # overflows at neither end
    return float(losses.sum(dtype=np.float64)), (margins, scale)


def preference_loss_backward(dloss: float, saved: Saved) -> tuple[Array, Array]:
    """The less certain the right answer was, the further both scores are pushed apart:

        dchosen = -scale σ(-m)        drejected = scale σ(-m)        σ(-m) = exp(-log(1 + exp(m)))

    Returns dchosen and drejected, (B,).
    """
    margins, scale = saved
    pull = np.exp(-np.logaddexp(0, margins)) * (scale * dloss)
    return -pull, pull
