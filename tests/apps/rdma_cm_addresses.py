#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""rdma_resolve_addr where it depends on others: a neighbour that has to be asked first, one that does
not answer, addresses to which there is no way; and addresses of InfiniBand."""
import subprocess
import time

import checks
from programs import DEADLINE_SECONDS, Failure

PEERS = {4: "10.77.0.1", 6: "fd77::1"}  # of the client
SILENT = {4: "10.77.0.99", 6: "fd77::99"}
OUT_OF_REACH = {4: "203.0.113.1", 6: "2001:db8::1"}
PATIENCE_MILLISECONDS = 300
PATIENCE_WITH_AN_ANSWER = 5000  # which may come late on a busy machine


def resolve(place, tool, address, patience=PATIENCE_MILLISECONDS):
    """(What the tool printed, seconds)"""
    began = time.monotonic()
    done = subprocess.run(place.client_command([tool, "resolve", address, str(patience)]),
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=DEADLINE_SECONDS)
    return done.stdout.strip(), time.monotonic() - began


def expect(text, expected):
    if expected not in text:
        raise Failure(f"{text!r} instead of {expected!r}")


def forget_neighbours(place):
    subprocess.run([*place.client_prefix, "ip", "neigh", "flush", "all"], check=True)


def check_a_neighbour_that_answers(place, tool):
    for address in PEERS.values():
        forget_neighbours(place)
        expect(resolve(place, tool, address, PATIENCE_WITH_AN_ANSWER)[0],
               "event RDMA_CM_EVENT_ADDR_RESOLVED, status 0")


def check_a_neighbour_that_is_silent(place, tool):
    for address in SILENT.values():
        text, seconds = resolve(place, tool, address)
        expect(text, "event RDMA_CM_EVENT_ADDR_ERROR, status -110")
        if seconds < PATIENCE_MILLISECONDS / 1000:
            raise Failure(f"given up after {seconds:.3f} s")


def check_an_address_out_of_reach(place, tool):
    for address in OUT_OF_REACH.values():
        expect(resolve(place, tool, address)[0], "rdma_resolve_addr: Network is unreachable")


def check_an_address_of_infiniband_has_no_route(place, tool):
    """As on Linux where all ports are RoCE: found, if it has a prefix of a port's, and the end."""
    def outcomes(gid, pkey="0xffff"):
        done = subprocess.run(place.client_command([tool, "infiniband", gid, pkey]), check=True,
                              text=True, stdout=subprocess.PIPE, timeout=DEADLINE_SECONDS)
        return done.stdout.splitlines()

    found = ["resolve: 0", "event RDMA_CM_EVENT_ADDR_RESOLVED, status 0", "family: AF_IB",
             "route: No such device", "connect: Invalid argument"]
    none = ["resolve: No such device"]
    bound, unbound = ["bind: 0"], ["bind: No such device"]
    for gid, pkey, expected in [("::", "0xffff", bound + found),
                                ("::1", "0", bound + found),
                                (f"::ffff:{PEERS[4]}", "0xffff", unbound + found),
                                (PEERS[6], "0x7fff", unbound + found),
                                (PEERS[6], "0x1234", unbound + none),
                                (OUT_OF_REACH[6], "0xffff", unbound + none)]:
        seen = outcomes(gid, pkey)
        if seen != expected:
            raise Failure(f"{gid} with {pkey}: {seen} instead of {expected}")


if __name__ == "__main__":
    checks.main(__doc__, [check_a_neighbour_that_answers, check_a_neighbour_that_is_silent,
                          check_an_address_out_of_reach,
                          check_an_address_of_infiniband_has_no_route], "cm_tool")
