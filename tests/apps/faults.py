#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs on a network that is made bad by --fault: each kind of fault at 5 %, and all
together. They must finish, with the right data, and the faults must have happened."""
import re
import sys

import checks
from pairs import Place, run_pair
from programs import Failure

ITERATIONS = 40
PINGPONG = ["ibv_rc_pingpong", "-c", "-g", "0", "-m", "1024", "-s", "4096", "-n", str(ITERATIONS)]
# Not ib_send_lat -e: it takes the event of a receive for that of its send, and posts one too many
# when an acknowledgement comes late.
PERFTEST = [
    ["ib_write_bw", "-x", "0", "-F", "-m", "1024", "-s", "20000", "-n", "40"],
    ["ib_send_bw", "-x", "0", "-F", "-m", "1024", "-s", "5000", "-n", "40", "-b", "-e"],
    ["ib_read_bw", "-x", "0", "-F", "-m", "1024", "-s", "20000", "-n", "40"],
    ["ib_atomic_lat", "-x", "0", "-F", "-n", "40"],
]


def with_options(place, *options):
    """The same place, where both programs run with these as well."""
    return Place(place.name, place.uroce, [*place.server, *options], [*place.client, *options],
                 place.address, place.server_prefix, place.client_prefix, place.server_device,
                 place.client_device)


def counted(texts, counter):
    return sum(int(value) for text in texts for value in re.findall(rf"\b{counter}=(\d+)", text))


def run_under(place, spec, *counters):
    """Every program; what happened to how many packets in all."""
    seen = dict.fromkeys(counters, 0)
    for command in [PINGPONG, *PERFTEST]:
        texts = run_pair(with_options(place, "--fault", spec, "--log", "info"), command)
        if command is PINGPONG and any("invalid data" in text for text in texts):
            raise Failure("\n".join(texts))
        for counter in counters:
            seen[counter] += counted(texts, counter)
    if not all(seen.values()):
        raise Failure(f"{spec}: not every fault has happened: {seen}")
    return " ".join(f"{counter}={count}" for counter, count in seen.items())


def check_loss(place, _):
    return run_under(place, "loss=5%,seed=11", "faults_lost")


def check_duplicates(place, _):
    return run_under(place, "dup=5%,seed=13", "faults_duplicated")


def check_reordering(place, _):
    return run_under(place, "reorder=5%,seed=14", "faults_reordered")


def check_corruption(place, _):
    return run_under(place, "corrupt=5%,seed=15", "faults_corrupted", "rx_bad_icrc")


def check_delay(place, _):
    return run_under(place, "delay=50us..500us,seed=16", "faults_delayed")


def check_all_at_once(place, _):
    return run_under(place, "loss=1%,burst=2,dup=1%,reorder=2%,delay=10us..100us,corrupt=1%,seed=17",
                     "faults_lost", "faults_duplicated", "faults_reordered", "faults_corrupted",
                     "faults_delayed")


if __name__ == "__main__":
    sys.exit(checks.main(__doc__, [function for name, function in list(globals().items())
                                   if name.startswith("check_")]))
