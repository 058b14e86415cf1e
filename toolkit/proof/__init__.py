"""The proof of every derivative: the check, a case for every branch of every pair, and the well-known wrong versions.

A pair is a forward and a backward, as in `toolkit.functional`; the check takes anybody's own:

    from toolkit.proof import check

    report = check(my_forward, my_backward, arguments)  # forward(*arguments) -> (y, saved); backward(dy, saved)
    print(report)

The report has a line for each argument, and where a gradient is wrong, what is likely wrong with it; `report.passed`
is for tests. Choose random arguments, parameters too: where a gain is 1 and a bias 0, some wrong gradients pass.

    python -m toolkit.proof      checks every pair of `toolkit.functional`, and that every wrong version is found

`gradient_check` has the check, `cases` the pairs with their arguments, `wrong` the wrong versions. `toolkit explain
gradients` shows all of it beside the formulas and the source.
"""

from toolkit.proof.cases import CASES, Case
from toolkit.proof.gradient_check import Measurement, Report, central_difference, check
from toolkit.proof.wrong import WRONG, Wrong

__all__ = ["CASES", "WRONG", "Case", "Measurement", "Report", "Wrong", "central_difference", "check"]
