#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs that connect through librdmacm, between uroce's communication manager and
Linux's, each side as client and server; and what the two say to each other, field by field."""
import contextlib
import ipaddress
import tempfile

import interop_checks
from audit import ANSWERS, capture, check_icrcs, dissected
from cm_messages import FIELDS, conversation, expect_alike, expect_answers, field, messages
from interop_checks import both_ways, chosen, expect
from pairs import collect
from programs import Failure, free_port
from rdma_cm import ATTEMPTS, CLOSED_TOO_SOON, NOT_LISTENING_AGAIN

PERFTEST = ["ib_write_bw -s 65536 -n 50", "ib_send_bw -s 65536 -n 50", "ib_read_lat -s 64 -n 50",
            "ib_send_bw -c UD -s 1024 -n 20"]
NO_LISTENER = "error 8"
DATAGRAM_PORT = 7174  # udaddy's, which knows no other


def run_pair(server, client, words, family, port=None):
    """The outputs. `words(address, port)` are the server's command and the client's."""
    port = port or free_port()
    of_server, of_client = words(server.addresses[family], str(port))
    with server.start_listener(of_server, port) as serving, client.start(of_client) as asking:
        collect([serving, asking])
        return [serving.text(), asking.text()]


def run_until_in_time(is_too_soon, *arguments):
    """Again, where the programs by themselves did something too soon, which they may on any device."""
    for attempt in range(ATTEMPTS):
        try:
            return run_pair(*arguments)
        except Failure as failure:
            if attempt == ATTEMPTS - 1 or not is_too_soon(str(failure)):
                raise


def rping_words(options):
    def words(address, port):
        return [["rping", role, "-a", address, "-p", port, *options.split()] for role in ("-s", "-c")]
    return words


def rping(server, client, family, options):
    run_until_in_time(CLOSED_TOO_SOON.search, server, client, rping_words(options), family)


def ucmatose(server, client, family):
    options = ["ucmatose", "-c", "20", "-C", "20", "-S", "5000"]
    run_pair(server, client, lambda address, port: [[*options, "-b", address, "-p", port],
                                                    [*options, "-s", address, "-p", port]], family)


def udaddy(server, client, family, connections=5):
    options = ["udaddy", "-c", str(connections), "-C", "20"]
    run_pair(server, client, lambda address, _: [[*options, "-b", address], [*options, "-s", address]],
             family, DATAGRAM_PORT)


@contextlib.contextmanager
def far_away(side):
    """perftest connects twice, and the guest is slower to listen again than uroce to connect again."""
    if side.name == "uroce":
        side.wrapped_in("--fault", "delay=50ms..50ms")
    try:
        yield
    finally:
        if side.name == "uroce":
            side.wrapped_in()


def perftest(server, client, family, tool):
    def words(address, port):
        command = [*tool.split(), "-R", "-F", "-p", port]
        return [command, [*command, address]]
    with far_away(client):
        run_until_in_time(NOT_LISTENING_AGAIN.search, server, client, words, family)


def nobody_listens(server, client, family):
    """Refused at once, by a side that has another port."""
    address, port = server.addresses[family], free_port()
    with server.start_listener(["rping", "-s", "-a", address, "-p", str(port)], port), \
            client.start(["rping", "-c", "-a", address, "-p", str(free_port())]) as asking:
        expect(asking.wait() != 0 and NO_LISTENER in asking.text(), asking.text())


def talk_of(server, client, run):
    """Messages and packets between the two."""
    network = next(side.guest for side in (server, client) if side.name == "rxe").network
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/wire.pcapng"
        with capture(network, path):
            run(server, client)
        check_icrcs(path)
        packets = dissected(path)
    return conversation(messages(packets)), packets


def first_psn(packets, sender):
    return next((packet.psn for packet in packets
                 if packet.qp != 1 and packet.ip == sender and packet.opcode not in ANSWERS), None)


def expect_addresses(request):
    """The addresses of annex A11 and the GIDs of the path are those of the packet."""
    sender = ipaddress.ip_address(request.sender).packed
    gid = sender if len(sender) == 16 else bytes(10) + b"\xff\xff" + sender
    expect(field(request, "source") == sender.rjust(16, b"\0"), f"source: {request}")
    expect("local GID" not in FIELDS[request.name] or field(request, "local GID") == gid,
           f"GID: {request}")


def expect_handshake(talk, packets):
    """Each begins with the PSN that the other has named."""
    expect_addresses(talk["REQ"])
    for asked, answered in (("REQ", "REP"), ("REP", "RTU"), ("DREQ", "DREP")):
        expect_answers(talk, asked, answered)
    for name, peer in (("REQ", talk["REP"].sender), ("REP", talk["REQ"].sender)):
        named = int.from_bytes(field(talk[name], "PSN"), "big")
        expect(first_psn(packets, peer) == named, f"{peer} does not begin with {named}")


def expect_same(one, other):
    for name in sorted(set(one) & set(other)):
        expect_alike(one[name], other[name])
    return ", ".join(f"{name}: {one[name].sender}" for name in one)


def connection_messages(uroce, rxe, family):
    """What uroce says as client and as server is what Linux says as such."""
    def run(server, client):
        try:
            run_pair(server, client, rping_words("-C 2 -V"), family)
        except Failure as failure:
            if not CLOSED_TOO_SOON.search(str(failure)):
                raise  # by then all is said
    talks = []
    for pair in ((rxe, uroce), (uroce, rxe)):
        talk, packets = talk_of(*pair, run)
        expect_handshake(talk, packets)
        talks.append(talk)
    return expect_same(*talks)


def datagram_messages(uroce, rxe, family):
    talks = []
    for pair in ((rxe, uroce), (uroce, rxe)):
        talk, _ = talk_of(*pair, lambda server, client: udaddy(server, client, family, 1))
        expect_addresses(talk["SIDR_REQ"])
        expect_answers(talk, "SIDR_REQ", "SIDR_REP")
        talks.append(talk)
    return expect_same(*talks)


def of_family(function, family):
    def check(uroce, rxe):
        return function(uroce, rxe, family)
    check.__name__ = f"{function.__name__}_{family}"
    return check


def make_checks(options):
    """Both families; of perftest, which knows IPv4 only, each case one way round without --all."""
    checks = []
    for family in (4, 6):
        checks += [*both_ways(rping, family, "-C 100 -V"), *both_ways(ucmatose, family),
                   *both_ways(udaddy, family), *both_ways(nobody_listens, family),
                   of_family(connection_messages, family), of_family(datagram_messages, family)]
    return checks + chosen([check for tool in PERFTEST for check in both_ways(perftest, 4, tool)],
                           options)


if __name__ == "__main__":
    interop_checks.main(interop_checks.parser_for(__doc__), make_checks)
