#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Single calls of librdmacm answer what they answer on Linux: which port and device an identifier has,
what is refused, and with which error."""
import subprocess

import checks
from programs import DEADLINE_SECONDS, Failure

OWN = {4: "10.77.0.2", 6: "fd77::2"}  # the client's, in the place veth-udp
PEER = "10.77.0.1"
MANY = 2000  # more than the directory has rows for, and than ports drawn by chance stay apart
PRIVILEGED = 111


def output(place, tool, *words, before=()):
    """What it prints."""
    done = subprocess.run(place.client_command([*before, tool, *map(str, words)]), check=False,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=DEADLINE_SECONDS)
    return done.stdout


def expect(text, *expected):
    """Each of these lines, in this order, and no others."""
    if text.splitlines() != list(expected):
        raise Failure(f"{text!r} instead of {expected!r}")


def expect_line(text, line):
    if line not in text.splitlines():
        raise Failure(f"{text!r} without {line!r}")


def check_ports_of_many_that_connect_from_an_address(place, tool):
    text = output(place, tool, "resolve", OWN[4], 0, PEER, MANY)
    expect_line(text, f"{MANY} resolved, {MANY} ports")


def check_ports_of_many_that_connect_from_anywhere(place, tool):
    text = output(place, tool, "resolve", "-", 0, PEER, MANY)
    expect_line(text, f"{MANY} resolved, {MANY} ports")


def check_the_port_of_a_source_that_is_any(place, tool):
    expect(output(place, tool, "resolve", "0.0.0.0", 5555, PEER, 1),
           "from port 5555 of uroce0", "1 resolved, 1 ports")
    text = output(place, tool, "resolve", "0.0.0.0", 5555, PEER, 2)
    expect_line(text, "rdma_resolve_addr: Cannot assign requested address")


def check_a_port_that_is_taken(place, tool):
    """In use at an address, and not available where one of both is any."""
    any_address, own = ("0.0.0.0", 7013), (OWN[4], 7013)
    expect(output(place, tool, "bind", *own, *own, *any_address),
           f"{OWN[4]}: done, device uroce0", f"{OWN[4]}: Address already in use, device none",
           "0.0.0.0: Cannot assign requested address, device none")


def check_listening_with_what_could_not_connect(place, tool):
    """It gets a port of its own then, though none was named."""
    text = output(place, tool, "fallback", OWN[4], "10.77.0.99")
    expect(text, "RDMA_CM_EVENT_ADDR_ERROR", "rdma_listen: done, a port")



def check_a_privileged_port(place, tool):
    for before, answer in (((), "done"),
                           (("setpriv", "--bounding-set=-net_bind_service"), "Permission denied")):
        expect(output(place, tool, "bind", "0.0.0.0", PRIVILEGED, before=before),
               f"0.0.0.0: {answer}, device none")


if __name__ == "__main__":
    checks.main(__doc__, [
        check_ports_of_many_that_connect_from_an_address,
        check_ports_of_many_that_connect_from_anywhere, check_the_port_of_a_source_that_is_any,
        check_a_port_that_is_taken, check_listening_with_what_could_not_connect,
        check_a_privileged_port], "cm_calls")
