#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The ICRC between uroce and Linux's rxe: each accepts every packet of the other, and neither takes
one that was damaged on the way."""
import contextlib
import tempfile

import interop_checks
from audit import capture, dissected
from bad_network import RECEIVING, SENDING, netem
from faults import counted
from guest import address
from interop_checks import both_ways, expect
from operations import run_both
from programs import Failure, wait_until

REQUESTS = "send:0 send:1 write:5000 read:5000 add swap send_imm:20000 write_imm:3 send:65536 read:65536"
RECEIVED = "/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts"


def rxe_of(*sides):
    return next(side for side in sides if side.name == "rxe")


@contextlib.contextmanager
def counting(*sides):
    """uroce says at its end what it has counted."""
    uroce = next(side for side in sides if side.name == "uroce")
    uroce.wrapped_in("--log", "info")
    try:
        yield
    finally:
        uroce.wrapped_in()


def accepted(server, client, family):
    """What uroce has sent is what rxe has taken; of rxe's packets uroce has found none wrong."""
    guest = rxe_of(server, client).guest
    before = int(guest.run(f"cat {RECEIVED}"))

    def taken():
        return int(guest.run(f"cat {RECEIVED}")) - before

    with tempfile.TemporaryDirectory() as folder, counting(server, client):
        path = f"{folder}/wire.pcapng"
        with capture(guest.network, path):
            texts = run_both(server, client, REQUESTS, family)
        ours = sum(packet.ip == address(1, family) for packet in dissected(path))
    with contextlib.suppress(Failure):  # the guest may be behind
        wait_until(lambda: taken() >= ours, "rxe has taken all", 10)
    count = taken()
    expect(count == ours, f"{ours} packets sent, {count} taken")
    expect(counted(texts, "rx_packets") > 0 and counted(texts, "rx_bad_icrc") == 0, "\n".join(texts))
    return f"{ours} packets"


def damaged(server, client, interface):
    """5 % of the packets with a bit turned over: they are dropped, and the data is right. (rxe does not
    count them, and what uroce sends has a checksum of UDP's, at which the guest's kernel looks first.)"""
    with netem(rxe_of(server, client).guest, interface, "corrupt", 5), counting(server, client):
        texts = run_both(server, client, " ".join([REQUESTS] * 5))
    dropped = counted(texts, "rx_bad_icrc")
    expect((dropped > 0) == (interface == SENDING), "\n".join(texts))
    return f"uroce has dropped {dropped} packets"


def make_checks(_):
    return [*both_ways(accepted, 4), *both_ways(accepted, 6), *both_ways(damaged, SENDING),
            *both_ways(damaged, RECEIVING)]


if __name__ == "__main__":
    interop_checks.main(interop_checks.parser_for(__doc__), make_checks)
