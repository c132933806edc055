#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Port and GID events of a device whose interface changes, as the stock ibv_asyncwatch prints them,
and what programs then see. Needs root, for an interface of its own."""
import contextlib
import os
import subprocess

import checks
import places
from environment import skip
from pairs import Place
from programs import Failure, Program, wait_until


@contextlib.contextmanager
def interface(uroce):
    """A host with the interface d0, which is up and has an address."""
    with places.hosts(1) as (host,):
        host.ip("link", "add", "d0", "type", "veth", "peer", "name", "d1")
        host.ip("link", "set", "d1", "up")
        host.address("d0", "10.80.0.1/24")
        yield host, Place("events", uroce, ["--netdev", "d0", "--local", "off"], [], "10.80.0.1",
                          host.inside)


@contextlib.contextmanager
def watched(uroce):
    """And a program that watches its device."""
    with interface(uroce) as (host, place):
        command = place.server_command(["stdbuf", "-oL", "ibv_asyncwatch"])
        with Program(command) as watcher:
            watcher.wait_for_text("async event FD")
            yield host, place, watcher


def wait_for_event(watcher, name, count=1):
    wait_until(lambda: watcher.text().count(name) >= count or watcher.has_ended(),
               f"{name}, {count} times:\n{watcher.text()}")
    if watcher.has_ended():
        raise Failure(f"{watcher} has ended:\n{watcher.text()}")


def check_addresses_that_come_and_go(place, _):
    with watched(place.uroce) as (host, place, watcher):
        host.ip("addr", "add", "10.80.0.2/24", "dev", "d0")
        wait_for_event(watcher, "IBV_EVENT_GID_CHANGE")
        devinfo = place.output(["ibv_devinfo", "-v"])
        if "::ffff:10.80.0.2" not in devinfo:
            raise Failure(f"the new address is no GID:\n{devinfo}")
        seen = watcher.text().count("IBV_EVENT_GID_CHANGE")
        host.ip("addr", "del", "10.80.0.2/24", "dev", "d0")
        wait_for_event(watcher, "IBV_EVENT_GID_CHANGE", seen + 1)
        if "::ffff:10.80.0.2" in place.output(["ibv_devinfo", "-v"]):
            raise Failure("the address that went is still a GID")


def check_interface_that_goes_down_and_up(place, _):
    with watched(place.uroce) as (host, place, watcher):
        host.ip("link", "set", "d0", "down")
        wait_for_event(watcher, "IBV_EVENT_PORT_ERR")
        if "PORT_DOWN" not in place.output(["ibv_devinfo"]):
            raise Failure("ibv_devinfo does not say PORT_DOWN")
        host.ip("link", "set", "d0", "up")
        wait_for_event(watcher, "IBV_EVENT_PORT_ACTIVE")
        if "PORT_ACTIVE" not in place.output(["ibv_devinfo"]):
            raise Failure("ibv_devinfo does not say PORT_ACTIVE")


def check_carrier_that_is_lost(place, _):
    with watched(place.uroce) as (host, _, watcher):
        host.ip("link", "set", "d1", "down")
        wait_for_event(watcher, "IBV_EVENT_PORT_ERR")
        host.ip("link", "set", "d1", "up")
        wait_for_event(watcher, "IBV_EVENT_PORT_ACTIVE")


def check_address_of_a_shells_next_command(place, _):
    """The tree was made when the shell was started; what it starts sees what is true then."""
    with interface(place.uroce) as (host, place):
        script = ["sh", "-c", "echo ready; read line; ibv_devinfo -v"]
        with Program(place.server_command(script), stdin=subprocess.PIPE) as shell:
            shell.wait_for_text("ready")
            host.ip("addr", "add", "10.80.0.3/24", "dev", "d0")
            shell.process.stdin.write("go on\n")
            shell.process.stdin.close()
            status = shell.wait()
            if status != 0 or "::ffff:10.80.0.3" not in shell.text():
                raise Failure(f"ended with {status}:\n{shell.text()}")


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("needs root for an interface of its own")
    checks.main(__doc__, [function for name, function in list(globals().items())
                          if name.startswith("check_")])
