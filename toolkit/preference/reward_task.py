"""Training a reward model: of two replies to a prompt, the preferred one is to get the larger reward."""

from toolkit.functional.preference_loss import preference_loss, preference_loss_backward
from toolkit.models.reward import RewardModel
from toolkit.nn.tape import Tape
from toolkit.preference.examples import whole_texts
from toolkit.preference.pair_task import NO_PAIRS, PairSums, PairTask, Share, in_turns, pair_sums


class RewardTask(PairTask):
    """-log σ(r_chosen - r_rejected), r being the value of the last token of prompt and reply: the end marker."""

    def loss(self, model: RewardModel, share: Share, tape: Tape) -> PairSums:
        """Sums over the pairs of a share; adds their gradient where the tape keeps."""
        if len(share.numbers) == 0:
            return NO_PAIRS
        rewards = model.values(*whole_texts(*self.pairs[share.name].sides(share.numbers)), tape)
        loss, saved = preference_loss(rewards[0::2], rewards[1::2])
        if tape.keeps:
            model.backward(in_turns(*preference_loss_backward(1.0, saved)), tape)
        return pair_sums(loss, rewards)
