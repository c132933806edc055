#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A port's counters, as programs read them from sysfs: they are the port's and not a process's, they
count what has happened, and they never fall, however a process ends."""
import re
import signal
import sys

import checks
from faults import with_options
from pairs import run_pair
from programs import Failure, wait_until

MESSAGES = 200
PINGPONG = ["ibv_rc_pingpong", "-g", "0", "-s", "64", "-n", str(MESSAGES)]


def counters(place):
    """Of all files in one look, by name."""
    text = place.output(["sh", "-c", "grep -r . /sys/class/infiniband/*/ports/1/*counters"])
    return {name: int(value) for name, value in re.findall(r"/(\w+):(\d+)$", text, re.MULTILINE)}


def expect(condition, what, *seen):
    if not condition:
        raise Failure("\n".join([what, *map(str, seen)]))


def expect_no_less(before, after):
    expect(before.keys() == after.keys(), "a counter has come or gone", before, after)
    expect(all(after[name] >= value for name, value in before.items()), "one fell", before, after)


def check_count_what_has_happened(place, _):
    before = counters(place)
    run_pair(place, PINGPONG)
    after = counters(place)
    expect_no_less(before, after)
    sent, received = (after[name] - before[name] for name in ("sent_pkts", "rcvd_pkts"))
    expect(sent >= 2 * MESSAGES, f"{sent} packets for {MESSAGES} messages each way", after)
    # The last acknowledgement may find nobody any more.
    expect(2 * MESSAGES <= received <= sent, f"{received} of {sent} have arrived", after)
    expect(after["port_xmit_packets"] == after["sent_pkts"] and
           after["port_rcv_packets"] == after["rcvd_pkts"], "two counts of the same", after)
    return f"{sent} packets"


def check_show_what_was_lost(place, _):
    before = counters(place)
    run_pair(with_options(place, "--fault", "loss=5%,seed=11"), PINGPONG)
    after = counters(place)
    expect_no_less(before, after)
    expect(after["retrans_pkts"] > before["retrans_pkts"], "nothing was sent again", after)
    return f"retrans_pkts={after['retrans_pkts'] - before['retrans_pkts']}"


def check_outlive_programs_that_are_killed(place, _):
    before = counters(place)
    endless = ["ib_send_lat", "-x", "0", "-F", "-s", "64", "-n", "100000000"]
    with place.running_pair(endless) as programs:
        wait_until(lambda: any(program.has_ended() for program in programs) or
                   counters(place)["sent_pkts"] > before["sent_pkts"] + MESSAGES,
                   "packets that are counted while they are sent")
        for program in programs:
            expect(not program.has_ended(), "ended too early", program.text())
            program.signal(signal.SIGSTOP)
        last = counters(place)
        for program in programs:
            program.kill()
    expect_no_less(last, counters(place))
    # And the next ones, who get their rows, go on from there.
    run_pair(place, PINGPONG)
    after = counters(place)
    expect_no_less(last, after)
    expect(after["sent_pkts"] >= last["sent_pkts"] + 2 * MESSAGES, "not counted on", last, after)


if __name__ == "__main__":
    sys.exit(checks.main(__doc__, [function for name, function in list(globals().items())
                                   if name.startswith("check_")]))
