#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What identifiers of librdmacm hear when the interface of their device is deleted, and that it goes
on when there is one again. Needs root, for an interface of its own."""
import os
import subprocess

import checks
from environment import skip
from port_events import interface
from programs import Failure, Program, free_port, wait_until

TOLD = [f"{name}: RDMA_CM_EVENT_DEVICE_REMOVAL, status 0"
        for name in ("bound", "listening", "resolved")]
AFTERWARDS = "afterwards: rdma_listen: Invalid argument, rdma_resolve_route: Invalid argument"


def add(host):
    host.ip("link", "add", "d0", "type", "veth", "peer", "name", "d1")
    host.ip("link", "set", "d1", "up")
    host.address("d0", "10.80.0.1/24")


def watch(place, tool):
    return Program(place.server_command([tool, "watch", place.address, str(free_port())]),
                   stdin=subprocess.PIPE)


def expect_removal(watcher, times=1):
    wait_until(lambda: watcher.text().count("afterwards:") == times or watcher.has_ended(),
               f"three that are told:\n{watcher.text()}")
    lines = watcher.text().splitlines()
    said = lines[len(lines) - lines[::-1].index("watches"):]
    if sorted(said[:-1]) != TOLD or said[-1] != AFTERWARDS:
        raise Failure(f"expected {TOLD} and {AFTERWARDS}:\n{watcher.text()}")


def check_all_that_are_bound_are_told_once(place, tool):
    with interface(place.uroce) as (host, place):
        with watch(place, tool) as watcher:
            watcher.wait_for_text("watches")
            # None of this is a removal.
            host.ip("link", "set", "d0", "down")
            host.ip("link", "set", "d0", "name", "d2")
            host.ip("link", "set", "d2", "name", "d0")
            host.ip("link", "set", "d0", "up")
            wait_until(lambda: "PORT_ACTIVE" in place.output(["ibv_devinfo"]), "an active port")
            if watcher.text().splitlines()[-1] != "watches":
                raise Failure(f"told of a removal that was none:\n{watcher.text()}")
            host.ip("link", "del", "d0")
            expect_removal(watcher)


def check_what_comes_again_can_be_bound_to(place, tool):
    with interface(place.uroce) as (host, place):
        with watch(place, tool) as watcher:
            watcher.wait_for_text("watches")
            host.ip("link", "del", "d0")
            expect_removal(watcher)
            add(host)
            wait_until(lambda: "::ffff:10.80.0.1" in place.output(["ibv_devinfo", "-v"]),
                       "the address to be a GID again")
            watcher.process.stdin.write("\n")
            watcher.process.stdin.flush()
            wait_until(lambda: watcher.text().count("watches") == 2 or watcher.has_ended(),
                       f"identifiers that are bound again:\n{watcher.text()}")
            host.ip("link", "del", "d0")
            expect_removal(watcher, 2)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("needs root for an interface of its own")
    checks.main(__doc__, [check_all_that_are_bound_are_told_once,
                          check_what_comes_again_can_be_bound_to], "cm_tool")
