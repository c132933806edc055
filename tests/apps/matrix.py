#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified perftest and ibv_{rc,uc,ud,srq,xsrq}_pingpong, over every datapath, in every topology.

By default a pairwise subset: every two option values that may stand together do so in at least one
pair of programs. With --all everything that the programs accept. Exit status 77: this place cannot
be had here.
"""
import argparse
import collections
import itertools
import multiprocessing
import os
import random
import sys
import time

import pingpong
import perftest
import places
from allpairs import all_pairs
from environment import apart_from_the_user, skip
from pairs import Refused, run_pair
from programs import Failure


def product(factors):
    return [dict(zip(factors, values)) for values in itertools.product(*factors.values())]


def is_possible(row, place):
    return not perftest.hangs_by_itself(row) and not (places.loses(place) and
                                                      perftest.would_wait_for_what_is_lost(row))


def perftest_cases(names, wanted, is_all, mtus):
    """The rows for the place `wanted`; those of the subset are spread over all places."""
    factors = {**perftest.FACTORS, "-m": mtus}
    if is_all:
        rows = [row for row in product(factors) if is_possible(row, wanted)]
        # What a program refuses it refuses in every place.
        return [row for row in rows if wanted == names[0] or not perftest.refusals(row)]
    rows = all_pairs({"place": names, **factors}, lambda row: not perftest.refusals(row) and
                     is_possible(row, row.get("place", "shm")))
    refused = [row for row in product({**factors, "-m": [""]}) if len(perftest.refusals(row)) == 1]
    few = [row for number, row in enumerate(refused)
           if number % (5 * len(names)) == names.index(wanted)]
    return [row for row in rows if row["place"] == wanted] + few


def pingpong_cases(place, devinfo, is_all):
    factors = {**pingpong.FACTORS, "gid": pingpong.gid_indices(devinfo),
               "-m": pingpong.path_mtus(devinfo)}
    if not factors["gid"]:
        raise Failure(f"{place.name}: no GID\n{devinfo}")
    def is_possible(row):
        return pingpong.is_possible(row, factors["-m"][-1], places.loses(place.name))
    if is_all:
        return [row for row in product(factors) if is_possible(row)]
    return all_pairs(factors, is_possible)


def try_perftest(place, case, options):
    command = perftest.command(case, case.get("gid", 0), options.duration, options.iterations)
    reasons = perftest.refusals(case)
    try:
        texts = run_pair(place, command)
    except Refused as refused:
        if any(reason in str(refused) for reason in reasons):
            return "refused"
        raise Failure(f"refused without a known reason: {' '.join(command)}\n{refused}") from None
    if reasons:
        raise Failure(f"should have been refused ({reasons[0]}):\n{texts[0]}")
    if not perftest.is_expected_output(case, texts[1]):
        raise Failure(f"{' '.join(command)}: not the table that was expected:\n{texts[1]}")
    return "passed"


def try_pingpong(place, case, options):
    count = pingpong.iterations(case, options.iterations)
    before = place.received_bytes() if place.received_bytes else 0
    texts = run_pair(place, pingpong.command(case, count))
    for text in texts:
        if not pingpong.is_expected_output(case, text, count):
            raise Failure(f"{pingpong.command(case, count)}: not the output expected:\n{text}")
    if place.received_bytes:
        passed = place.received_bytes() - before
        if passed < count * int(case["-s"]):
            raise Failure(f"{count} messages of {case['-s']} bytes, {passed} bytes on the veth")
    return "passed"


def cases_of(place, options):
    """(name, function, row) of each that is wanted there, in an order that depends on the seed only."""
    devinfo = place.output(["ibv_devinfo", "-v", *place.server_device])
    cases = []
    if "pingpong" in options.programs:
        cases += [(" ".join(pingpong.command(row, 0)), try_pingpong, row)
                  for row in pingpong_cases(place, devinfo, options.all)]
    if "perftest" in options.programs:
        gids = pingpong.gid_indices(devinfo)
        mtus = pingpong.path_mtus(devinfo)
        rows = perftest_cases(options.places, place.name, options.all, mtus)
        for row, gid in zip(rows, itertools.cycle(gids)):
            row["gid"] = gid
            cases.append((f"{perftest.label(row)} -x {gid}", try_perftest, row))
    cases = [(f"{place.name}: {name}", *rest) for name, *rest in cases if options.only in name]
    if options.sample or options.jobs > 1:
        random.Random(options.seed).shuffle(cases)
    return cases[:options.sample]


def run_case(name, function, place, row, options):
    began = time.monotonic()
    try:
        outcome, detail = function(place, row, options), ""
    except (Failure, Refused) as failure:
        outcome, detail = "FAILED", f"\n{failure}"
    print(f"{outcome:8} {time.monotonic() - began:6.2f} s  {name}{detail}", flush=True)
    return outcome


def run_share(name, options, share):
    """Each case of this share of them, in a place of its own; a failure does not stop the others."""
    with places.make(name, options.uroce) as place:
        return collections.Counter(run_case(case, function, place, row, options)
                                   for case, function, row in
                                   cases_of(place, options)[share::options.jobs])


def run_place(name, options):
    if options.jobs == 1:
        return run_share(name, options, 0)
    with multiprocessing.Pool(options.jobs) as pool:
        shares = [(name, options, share) for share in range(options.jobs)]
        return sum(pool.starmap(run_share, shares), collections.Counter())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uroce", default="build/release/uroce", type=os.path.abspath)
    parser.add_argument("--all", action="store_true", help="everything, not only the subset")
    parser.add_argument("--sample", type=int, help="so many by chance of each place")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--jobs", type=int, default=1,
                        help="so many pairs at once, each in a place of its own")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--programs", default="pingpong,perftest")
    parser.add_argument("--duration", default=1, type=int, help="of -D, in seconds")
    parser.add_argument("--iterations", default=20, type=int)
    parser.add_argument("--places", default=",".join(places.PLACES),
                        help="what the subset is spread over")
    parser.add_argument("place", nargs="*", help="of --places; all when none is named")
    options = parser.parse_args()
    options.places = options.places.split(",")
    apart_from_the_user()
    chosen = options.place or options.places
    if os.geteuid() != 0:
        possible = [name for name in chosen if name not in places.NEED_ROOT]
        if not possible:
            skip(f"{', '.join(chosen)}: needs root")
        chosen = possible
    if options.sample or options.jobs > 1:
        print(f"--seed {options.seed}")
    table = {name: run_place(name, options) for name in chosen}
    print()
    for name, counts in table.items():
        print(f"{name:24}", "  ".join(f"{outcome} {n}" for outcome, n in sorted(counts.items())))
    return 1 if any("FAILED" in counts for counts in table.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
