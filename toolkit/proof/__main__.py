"""python -m toolkit.proof: check every pair of `toolkit.functional`, and that the check finds every wrong version.

The exit code is 1 where a gradient is wrong or a wrong version is not found.
"""

import sys

from toolkit.proof.cases import CASES, find_case, pair_name
from toolkit.proof.gradient_check import TOLERANCE
from toolkit.proof.wrong import WRONG


def main() -> int:
    """Print a line for every pair and for every wrong version; for any argument, such as --help, what this is."""
    if sys.argv[1:]:
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    pairs: dict[str, list] = {}
    for case in CASES:
        pairs.setdefault(pair_name(case.backward), []).append(case.check())
    print(f"{'pair':52}  {'cases':>16}  largest relative error")
    for name, reports in pairs.items():
        verdict = "right" if all(report.passed for report in reports) else "WRONG"
        print(f"{name:52}  {len(reports):>16}  {max(report.error for report in reports):.1e}  {verdict}")
    print(f"\n{'wrong version':52}  {'of the pair':16}  largest relative error")
    missed = 0
    for wrong in WRONG:
        case = find_case(wrong.case)
        report = case.check(backward=wrong.backward)
        missed += report.passed
        verdict = "MISSED" if report.passed else "found"
        print(f"{wrong.name:52}  {pair_name(case.backward):16}  {report.error:.1e}  {verdict}")
    right = sum(report.passed for reports in pairs.values() for report in reports)
    print(f"\n{right} of {len(CASES)} cases have a relative error of at most {TOLERANCE:g}; ", end="")
    print(f"{len(WRONG) - missed} of {len(WRONG)} wrong versions are found.")
    return 0 if right == len(CASES) and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
