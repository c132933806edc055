# SPDX-License-Identifier: BSD-2-Clause
"""uroce beside its competitors: every round measures everything once, so that a machine that gets
slower or faster meanwhile does so for all of them; then medians, ratios and the bars."""
import argparse
import json
import pathlib
import re
import sys

import cases
import machine
import report
from programs import Failure, Skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAILURES_UNTIL_LEFT_OUT = 2
QUIET_LOAD = 1.0


def arguments():
    parser = argparse.ArgumentParser(prog="compare.sh", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement, about")
    parser.add_argument("--quick", action="store_true", help="one round, a second each")
    parser.add_argument("--only", default="", metavar="REGEX", help="names in the table to measure")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds = chosen.seconds = 1
    return chosen


def essence(reason):
    """The first line, and the one of the programs' output that says most."""
    head, *output = [line.strip() for line in reason.splitlines() if line.strip()]
    errors = [line for line in output if re.search("error|cannot|fail", line, re.IGNORECASE)]
    return ": ".join([head, *(errors or output[-1:])[:1]])


def measure_once(case, samples, skipped):
    """Adds to `samples`, or to `skipped` with a reason."""
    first = case.metrics[0].name
    try:
        values = case.measure()
    except (Failure, Skip, OSError, ValueError, LookupError) as reason:
        case.failures += FAILURES_UNTIL_LEFT_OUT if isinstance(reason, Skip) else 1
        why = essence(str(reason) or repr(reason))
        skipped.update((metric.name, why) for metric in case.metrics)
        print(f"  {first}: not measured: {why}")
        return
    for metric, value in zip(case.metrics, values):
        samples.setdefault(metric.name, []).append(value)
        print(f"  {metric.name}: {report.shown(value)} {metric.unit}")


def measure_all(chosen, all_cases):
    samples, skipped = {}, {}
    for number in range(1, chosen.rounds + 1):
        print(f"round {number} of {chosen.rounds}, load {machine.load():.2f}")
        for case in all_cases:
            if case.failures < FAILURES_UNTIL_LEFT_OUT:
                measure_once(case, samples, skipped)
                sys.stdout.flush()
    return samples, skipped


def main():
    chosen = arguments()
    if not (chosen.build / "uroce").exists():
        sys.exit(f"compare: nothing is built in {chosen.build}; "
                 "cmake --preset release && cmake --build --preset release")
    all_cases = [case for case in cases.all_cases(chosen.build, chosen.seconds)
                 if any(re.search(chosen.only, metric.name) for metric in case.metrics)]
    facts = machine.facts(ROOT, chosen.rounds, chosen.seconds)
    if machine.load() > QUIET_LOAD:
        print(f"compare: load is {machine.load():.1f}: other work will distort what follows")
    samples, skipped = measure_all(chosen, all_cases)

    found = (report.all_metrics(all_cases), samples, skipped, facts)
    print("\n" + report.text(*found))
    if chosen.markdown:
        chosen.markdown.write_text(report.text(*found, layout=report.marked_down))
    if chosen.json:
        chosen.json.write_text(json.dumps(report.data(*found), indent=1) + "\n")


if __name__ == "__main__":
    main()
