#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Single calls of librdmacm answer what they answer on Linux: which port and device an identifier has,
what is refused, and with which error."""
import subprocess

import checks
import places
from pairs import Place
from programs import DEADLINE_SECONDS, Failure, wait_until

OWN = {4: "10.77.0.2", 6: "fd77::2"}  # the client's, in the place veth-udp
PEER = "10.77.0.1"
SILENT = "10.77.0.99"
OUT_OF_REACH = "2001:db8::1"
GROUP = "239.1.2.3"
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
    """It gets a port of its own then, though none was named, and is where it was bound, if it was."""
    for source, device in ((OWN[4], "uroce0"), ("-", "none")):
        expect(output(place, tool, "fallback", source, SILENT),
               "RDMA_CM_EVENT_ADDR_ERROR", f"rdma_listen: done, a port, device {device}")


def check_a_silent_neighbour_behind_an_interface_that_was_renamed(place, tool):
    def rename(name, to):
        return f"ip link set {name} down && ip link set {name} name {to} && ip link set {to} up"
    try:
        expect(output(place, tool, "after", rename("v1", "v7"), SILENT), "RDMA_CM_EVENT_ADDR_ERROR")
    finally:
        back = f"{rename('v7', 'v1')} && ip addr add {OWN[6]}/64 dev v1 nodad"
        subprocess.run([*place.client_prefix, "sh", "-c", back], check=True)


def check_a_privileged_port(place, tool):
    for before, answer in (((), "done"),
                           (("setpriv", "--bounding-set=-net_bind_service"), "Permission denied")):
        expect(output(place, tool, "bind", "0.0.0.0", PRIVILEGED, before=before),
               f"0.0.0.0: {answer}, device none")


def check_a_bound_source_from_which_no_way_leads(place, tool):
    expect(output(place, tool, "resolve", OWN[6], 0, OUT_OF_REACH, 1),
           "rdma_resolve_addr: Network is unreachable", "0 resolved, 0 ports")


def link_local_address(host, interface):
    """Once it may be used."""
    def words():
        return host.ip("-6", "-o", "addr", "show", "dev", interface, "scope", "link").split()
    wait_until(lambda: words() and "tentative" not in words(),
               f"{interface} has a link-local address")
    return words()[words().index("inet6") + 1].split("/")[0]


def check_link_local_addresses_of_two_interfaces(place, tool):
    """That are the same: of which device an identifier is, the scope says."""
    with places.hosts(2) as (own, peer):
        for number in (0, 1):
            own.ip("link", "add", f"v{number}", "address", "02:00:00:00:00:07", "type", "veth",
                   "peer", "name", f"w{number}", "address", "02:00:00:00:00:08",
                   "netns", str(peer.holder.pid))
            own.address(f"v{number}", f"10.76.{number}.1/24")
            peer.address(f"w{number}", f"10.76.{number}.2/24")
        address = link_local_address(own, "v0")
        if link_local_address(own, "v1") != address:
            raise Failure("the addresses differ")
        remote = link_local_address(peer, "w0")
        link_local_address(peer, "w1")
        both = Place("two-links", place.uroce, [], ["--netdev", "v0,v1", "--uplink", "udp"], address,
                     own.inside, own.inside)
        listeners = [word for number in (0, 1) for word in (f"{address}%v{number}", 7000)]
        expect(output(both, tool, "listen", *listeners),
               *(f"{address}%v{number}: done, device uroce{number}" for number in (0, 1)))
        expect(output(both, tool, "bind", address, 7000),
               f"{address}: Invalid argument, device none")
        for number in (0, 1):
            text = output(both, tool, "resolve", "-", 0, f"{remote}%v{number}", 1)
            if f" of uroce{number}\n1 resolved" not in text:
                raise Failure(f"{text!r} of interface {number}")


def check_an_answer_that_cannot_be_sent_refuses(place, tool):
    expect(output(place, tool, "accept", OWN[4]), "too much: Invalid argument",
           "the client: RDMA_CM_EVENT_REJECTED, status 28", "again: Invalid argument")


def check_disconnecting_what_has_no_connection(place, tool):
    expect(output(place, tool, "disconnect", OWN[4]), "idle: Invalid argument", "asking: done",
           "client: done", "server: done", "listening: done")


def check_a_group_that_is_joined_twice(place, tool):
    expect(output(place, tool, "join", OWN[4], GROUP),
           *["joining: done", "own context"] * 2, *["leaving: done"] * 2)


def check_options_that_are_set_after_binding(place, tool):
    while_listening = ["while listening: Invalid argument"]
    expect(output(place, tool, "option", "reuse", "0.0.0.0", 7015),
           "the other process: done", "taken back: Invalid argument", *while_listening)
    expect(output(place, tool, "option", "afonly", "::", 7014, "0.0.0.0", 7014),
           "the other process: done", "taken back: done", *while_listening)


def check_what_an_established_connection_tells(place, tool):
    expect(output(place, tool, "established", OWN[4]), "the server: QP 0, 0 bytes",
           "noted: Transport endpoint is already connected")


def check_an_event_that_is_read_without_a_descriptor_left(place, tool):
    expect(output(place, tool, "limit", OWN[4]), "RDMA_CM_EVENT_ADDR_RESOLVED")


if __name__ == "__main__":
    checks.main(__doc__, [
        check_ports_of_many_that_connect_from_an_address,
        check_ports_of_many_that_connect_from_anywhere, check_the_port_of_a_source_that_is_any,
        check_a_port_that_is_taken, check_listening_with_what_could_not_connect,
        check_a_silent_neighbour_behind_an_interface_that_was_renamed,
        check_a_privileged_port, check_a_bound_source_from_which_no_way_leads,
        check_link_local_addresses_of_two_interfaces, check_an_answer_that_cannot_be_sent_refuses,
        check_disconnecting_what_has_no_connection, check_a_group_that_is_joined_twice,
        check_options_that_are_set_after_binding, check_what_an_established_connection_tells,
        check_an_event_that_is_read_without_a_descriptor_left], "cm_calls")
