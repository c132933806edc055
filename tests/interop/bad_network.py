#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""uroce and Linux's rxe over a network that loses, doubles and reorders 5 % of the packets (and 1 %):
netem in the guest for either direction, and uroce's own faults. Everything completes, all data is
right."""
import contextlib
import re

import interop_checks
from interop_checks import both_ways, chosen, expect
from operations import run_tool

KINDS = ["loss", "duplicate", "reorder"]
LESSER, WORSE = 1, 5
REQUESTS = " ".join(["send:5000 write:200000 read:200000 add swap send_imm:20000 write_imm:70000",
                     "read:5000 late_send:9000 write:1048576 read:1048576 send:1 write:100 read:100"])
OPTIONS = "-q 4 -t 15"
FAULTS = {"loss": "loss", "duplicate": "dup", "reorder": "reorder"}
# What the guest sends leaves by eth0; what it receives of UDP is sent through another interface first.
# Not TCP: its checksum has been looked at before, and a bit that is turned over then is in what the two
# programs tell each other.
SENDING, RECEIVING = "eth0", "ifb0"
REDIRECT = ("ip link set ifb0 up txqueuelen 10000 mtu 4200 && "
            "tc qdisc add dev eth0 ingress && tc filter add dev eth0 ingress protocol ip u32 "
            "match ip protocol 17 0xff action mirred egress redirect dev ifb0")


def guest_of(*sides):
    return next(side.guest for side in sides if side.name == "rxe")


@contextlib.contextmanager
def netem(guest, interface, kind, rate):
    """On what passes `interface`; how many packets have passed meanwhile is looked at when it ends."""
    if interface == RECEIVING:
        guest.run(f"tc qdisc show dev eth0 ingress | grep -q ingress || {{ {REDIRECT}; }}")
    words = f"{kind} {rate}%" if kind != "reorder" else f"delay 2ms reorder {rate}%"
    guest.run(f"tc qdisc add dev {interface} root netem limit 20000 {words}")
    try:
        yield
        if kind == "loss":
            dropped = re.search(r"dropped (\d+)", guest.run(f"tc -s qdisc show dev {interface} root"))
            expect(int(dropped[1]) > 0, f"{kind} {rate}% on {interface} lost nothing")
    finally:
        guest.run(f"tc qdisc del dev {interface} root")


def in_the_guest(server, client, interface, kind, rate):
    with netem(guest_of(server, client), interface, kind, rate):
        return run_tool(server, client, REQUESTS, options=OPTIONS)


def by_uroce(server, client, kind, rate):
    """To what uroce receives."""
    uroce = next(side for side in (server, client) if side.name == "uroce")
    uroce.wrapped_in("--fault", f"{FAULTS[kind]}={rate}%,seed=7")
    try:
        return run_tool(server, client, REQUESTS, options=OPTIONS)
    finally:
        uroce.wrapped_in()


def make_checks(options):
    """Without --all, of the lesser rate each kind one way round, in turn."""
    def checks_of(rate):
        rows = [(in_the_guest, interface, kind, rate) for interface in (SENDING, RECEIVING)
                for kind in KINDS]
        rows += [(by_uroce, kind, rate) for kind in KINDS]
        return [check for row in rows for check in both_ways(*row)]
    return checks_of(WORSE) + chosen(checks_of(LESSER), options)


if __name__ == "__main__":
    interop_checks.main(interop_checks.parser_for(__doc__), make_checks)
