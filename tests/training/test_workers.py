import errno
import os
import signal
import sys
from multiprocessing.heap import BufferWrapper, Heap
from typing import NamedTuple

import numpy as np
import pytest

from tests.system.damage.disks import limited
from tests.training.small import Deadly, build_small, small_task
from toolkit.errors import ConfigError, ToolkitError
from toolkit.functional import tuning
from toolkit.functional.output_loss import LossSums
from toolkit.nn.memory import Pool
from toolkit.training.optimizer import Adam
from toolkit.training.task import Evaluator, Share, add_sums
from toolkit.training.translation import TranslationTask
from toolkit.training.workers import Workers

ADAM = Adam(eps=1e-3, weight_decay=0.01)  # so large that the rounding errors of vanishing gradients stay small


def workers_with_values(count: int, task=None) -> Workers:
    workers = Workers(build_small(), task or small_task(), ADAM, count)
    workers.model.initialize(np.random.default_rng(0))
    return workers


def shares(task, batch, count: int) -> list[list]:
    return [[(share, [1, index])] for index, share in enumerate(task.split(batch, count))]


def train(count: int, updates: int = 3) -> tuple[list[LossSums], np.ndarray]:
    task, sums = small_task(), []
    with workers_with_values(count, task) as workers:
        for step, batch in zip(range(1, updates + 1), task.batches(0, 60, 1), strict=False):
            sums.append(workers.gradient(shares(task, batch, count)))
            workers.reduce()
            workers.update(step, 0.01, 1 / sums[-1].tokens)
        return sums, workers.model.vector.copy()


def test_the_number_of_workers_changes_rounding_only() -> None:
    (sums, parameters), *others = (train(count) for count in (1, 2, 3))
    assert len(sums) == 3
    for other_sums, other_parameters in others:
        for one, other in zip(sums, other_sums, strict=True):
            assert one.tokens == other.tokens
            assert one.loss == pytest.approx(other.loss, rel=1e-5)
            assert one.negative_log_likelihood == pytest.approx(other.negative_log_likelihood, rel=1e-5)
        np.testing.assert_allclose(parameters, other_parameters, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2])
def test_the_same_number_of_workers_gives_the_same_bits(count: int) -> None:
    (sums, parameters), (again, parameters_again) = train(count), train(count)
    assert sums == again
    assert parameters.tobytes() == parameters_again.tobytes()


def test_spawned_workers_compute_what_forked_ones_do(monkeypatch) -> None:
    forked = train(2)
    monkeypatch.setattr("toolkit.parallel.START_METHOD", "spawn")
    sums, parameters = train(2)
    assert sums == forked[0]
    assert parameters.tobytes() == forked[1].tobytes()


def test_two_batches_are_one_large_batch() -> None:
    task = small_task()
    name, indices = "train", np.arange(20)
    results = []
    for parts in ([indices], [indices[:9], indices[9:]]):
        with workers_with_values(1, task) as workers:
            sums = workers.gradient([[(Share(name, part), [1]) for part in parts]])
            norm = workers.reduce()
            gradient = workers.shared.gradients[0].copy()
            workers.update(1, 0.01, 1 / sums.tokens)
            results.append((sums, norm, gradient, workers.model.vector.copy()))
    (sums, norm, gradient, parameters), (other_sums, other_norm, other_gradient, other_parameters) = results
    assert sums == pytest.approx(other_sums, rel=1e-6)
    assert norm == pytest.approx(other_norm, rel=1e-5)
    np.testing.assert_allclose(gradient, other_gradient, atol=1e-4)
    np.testing.assert_allclose(parameters, other_parameters, atol=1e-5)


def test_a_gradient_begins_at_zero_and_its_norm_is_its_length() -> None:
    task = small_task()
    batch = task.batches(0, 60, 1)[0]
    with workers_with_values(2, task) as workers:
        norms = []
        for _ in range(2):
            workers.gradient(shares(task, batch, 2))
            norms.append(workers.reduce())
            assert norms[-1] == pytest.approx(np.linalg.norm(workers.shared.gradients[0]), rel=1e-5)
    assert norms[0] == norms[1] > 0


class Where(Evaluator):
    """Says which process has done a piece, and with which parameters."""

    def answers(self, model, pieces):
        return [(piece, os.getpid(), model.vector.tobytes()) for piece in pieces]


@pytest.mark.parametrize("pieces", [0, 1, 5])
def test_all_workers_evaluate_and_their_answers_are_in_the_order_of_the_pieces(pieces: int) -> None:
    with Workers(build_small(), small_task(), ADAM, 3, evaluator=Where()) as workers:
        workers.model.initialize(np.random.default_rng(0))
        found = workers.answers(range(pieces))
        assert [(number, vector) for number, _, vector in found] == [
            (number, workers.model.vector.tobytes()) for number in range(pieces)
        ]
        assert len({process for _, process, _ in found}) == min(pieces, 3)


class Kernels(Evaluator):
    """Says by which kernels a worker decodes."""

    def answers(self, model, pieces):
        return [tuning.choose("memory") for _ in pieces]


def test_workers_decode_by_kernels_that_nobody_has_measured(monkeypatch) -> None:
    monkeypatch.delenv("TOOLKIT_KERNELS")
    monkeypatch.setattr(tuning, "_read_or_measured", lambda *_: "measured")
    assert tuning.choose("memory") == "measured"
    with Workers(build_small(), small_task(), ADAM, 2, evaluator=Kernels()) as workers:
        assert workers.answers(range(2)) == [tuning.FIXED["memory"]] * 2


@pytest.mark.parametrize("count", [1, 2])
def test_evaluation_leaves_gradients_and_parameters_alone(count: int) -> None:
    task = small_task()
    with workers_with_values(count, task) as workers:
        before = [vector.copy() for vector in (workers.shared.parameters, *workers.shared.gradients)]
        sums = workers.evaluate([[share] for share in task.split(Share("valid", np.arange(6)), count)])
        after = [workers.shared.parameters, *workers.shared.gradients]
    assert sums.tokens == sum(len(example.target) + 1 for example in task.examples["valid"])
    assert sums.loss == pytest.approx(sums.negative_log_likelihood)  # validation is not smoothed
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_more_workers_than_sentences() -> None:
    task = small_task()
    with workers_with_values(2, task) as workers:
        sums = workers.gradient(shares(task, Share("train", np.array([3])), 2))
    assert sums.tokens == len(task.examples["train"][3].target) + 1


def test_parameters_are_aligned_in_shared_memory() -> None:
    workers = workers_with_values(2)
    for vector in (workers.shared.parameters, *workers.shared.gradients, *workers.shared.moments):
        for view in workers.model.views(vector).values():
            assert view.ctypes.data % 64 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs processes that are forked")
def test_shared_memory_needs_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory for it may be missing, read-only or full: here no file at all can be written to."""
    whole = train(2)
    monkeypatch.setattr(BufferWrapper, "_heap", Heap())  # what was freed is not used again
    with limited(0):
        sums, parameters = train(2)
    assert sums == whole[0]
    assert parameters.tobytes() == whole[1].tobytes()


def test_no_room_for_shared_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mmap.mmap", full)
    with pytest.raises(ConfigError, match=r"no room .* \(No space left on device\): make room, or train with"):
        workers_with_values(2)
    assert workers_with_values(1).count == 1


def test_a_worker_that_dies_is_told_and_not_waited_for() -> None:
    task = small_task(kind=Deadly)
    with workers_with_values(2, task) as workers, pytest.raises(ToolkitError, match=r"died \(exit code 7\)"):
        workers.gradient(shares(task, task.batches(0, 60, 1)[0], 2))


def test_a_worker_that_is_killed_between_two_calls() -> None:
    task = small_task()
    batch = task.batches(0, 60, 1)[0]
    with workers_with_values(2, task) as workers:
        workers.gradient(shares(task, batch, 2))
        process = workers._others[0].process
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with pytest.raises(ToolkitError, match=r"died \(exit code -9\)"):
            workers.gradient(shares(task, batch, 2))


def test_an_error_in_a_worker_arrives_with_its_traceback() -> None:
    task = small_task(kind=Deadly)
    task.fail = lambda: 1 // 0
    expected = r"a worker failed:\n(.|\n)*ZeroDivisionError"
    with workers_with_values(2, task) as workers, pytest.raises(RuntimeError, match=expected):
        workers.gradient(shares(task, task.batches(0, 60, 1)[0], 2))


def test_workers_leave_at_once() -> None:
    """Each inherits the connections of those before it, and must not keep them from noticing the end.

    One that does not notice is killed after some seconds, and has another exit code.
    """
    with workers_with_values(4) as workers:
        processes = [each.process for each in workers._others]
    assert [process.exitcode for process in processes] == [0, 0, 0]


# What a task may do beside its loss


class MoreSums(NamedTuple):
    """Sums with a field of their own."""

    loss: float
    negative_log_likelihood: float
    tokens: int
    squares: float


class Curious(TranslationTask):
    """Gives a further sum where there is something to sum up, and computes other things too."""

    def loss(self, model, share, tape) -> LossSums | MoreSums:
        sums = super().loss(model, share, tape)
        return MoreSums(*sums, squares=float(sums.tokens**2)) if sums.tokens else sums

    def look(self, model, share, memory) -> tuple:
        """The share, who looks at it, and what the model is worth there."""
        assert isinstance(memory, Pool)
        return share, os.getpid(), float(model.vector.sum())

    def fail(self, model, share, memory) -> None:
        raise ZeroDivisionError(share)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_worker_computes_its_own_share_in_order(count: int) -> None:
    given = [{"number": number} for number in range(count)]
    with workers_with_values(count, small_task(kind=Curious)) as workers:
        value = float(workers.model.vector.sum())
        found = workers.compute("look", given)
        workers.model.vector[:] = 1.0
        later = workers.compute("look", given)
    assert [share for share, *_ in found] == given
    assert [share for share, *_ in later] == given
    assert found[0][1] == os.getpid()
    assert len({process for _, process, _ in found}) == count
    assert {total for _, _, total in found} == {value}  # all see the parameters that there are now
    assert {total for _, _, total in later} == {float(len(workers.model.vector))}


def test_computing_leaves_gradients_and_parameters_alone() -> None:
    with workers_with_values(2, small_task(kind=Curious)) as workers:
        workers.shared.gradients[0][:] = 3.0
        before = [vector.copy() for vector in (workers.shared.parameters, *workers.shared.gradients)]
        workers.compute("look", [1, 2])
        for old, new in zip(before, (workers.shared.parameters, *workers.shared.gradients), strict=True):
            np.testing.assert_array_equal(old, new)


def test_what_fails_in_a_worker_is_told_and_in_the_first_is_raised() -> None:
    with workers_with_values(1, small_task(kind=Curious)) as workers, pytest.raises(ZeroDivisionError):
        workers.compute("fail", [1])
    with workers_with_values(2, small_task(kind=Deadly)) as workers:
        workers._local.task = small_task(kind=Curious)
        with pytest.raises(RuntimeError, match=r"a worker failed:\n(.|\n)*AttributeError"):
            workers.compute("look", [1, 2])


def test_sums_keep_their_kind_and_their_further_fields() -> None:
    one, other, none = MoreSums(1.0, 2.0, 3, 4.0), MoreSums(10.0, 20.0, 30, 40.0), LossSums(0.0, 0.0, 0)
    assert add_sums([one, other]) == MoreSums(11.0, 22.0, 33, 44.0)
    assert type(add_sums([one, other])) is MoreSums
    # A worker without a share knows no more than that there is nothing.
    assert add_sums([none, one, none]) == one
    assert type(add_sums([none, one])) is MoreSums
    for nothing in [], [none], [none, none]:
        assert add_sums(nothing) == none
    plain = LossSums(1.0, 2.0, 3)
    assert add_sums([plain, none, plain]) == LossSums(2.0, 4.0, 6)


@pytest.mark.parametrize("numbers", [[3], [1, 2, 3, 4]])
def test_further_sums_arrive_from_all_workers(numbers: list[int]) -> None:
    """Also where some of them have nothing to do."""
    task = small_task(kind=Curious)
    parts = task.split(Share("train", np.array(numbers)), 3)
    with workers_with_values(3, task) as workers:
        sums = workers.gradient([[(part, [1])] for part in parts])
        again = workers.evaluate([[part] for part in parts])
    counts = [sum(len(task.examples["train"][n].target) + 1 for n in own) for _, own, *_ in parts]
    assert type(sums) is type(again) is MoreSums
    assert sums.tokens == again.tokens == sum(counts)
    assert sums.squares == again.squares == sum(count**2 for count in counts)
