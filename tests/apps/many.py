#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many programs on one device at a time: 16 processes in 8 pairs, all of them correct."""
import contextlib

import checks
from pairs import collect

PAIRS = [
    ["ibv_rc_pingpong", "-g", "0", "-c", "-n", "200"],
    ["ib_send_bw", "-x", "0", "-F", "-n", "200", "-s", "65536"],
    ["ibv_rc_pingpong", "-g", "1", "-c", "-e", "-n", "200", "-s", "100000"],
    ["ib_send_bw", "-x", "1", "-F", "-b", "-n", "200", "-s", "4096"],
    ["ibv_rc_pingpong", "-g", "0", "-c", "-n", "200", "-m", "256"],
    ["ib_send_bw", "-x", "0", "-F", "-e", "-n", "200", "-s", "1000", "-q", "4"],
    ["ibv_rc_pingpong", "-g", "1", "-c", "-n", "50", "-s", "1048576"],
    ["ib_write_bw", "-x", "1", "-F", "-n", "200", "-s", "8192"],
]


def check_eight_pairs_at_once(place, _):
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(place.running_pair(command)) for command in PAIRS]
        for pair in pairs:
            collect(pair)


def check_eight_pairs_again_and_again(place, _):
    """Blocks of QPNs and rings of programs that ended are used by those that come after."""
    for _ in range(3):
        check_eight_pairs_at_once(place, None)


if __name__ == "__main__":
    checks.main(__doc__, [check_eight_pairs_at_once, check_eight_pairs_again_and_again])
