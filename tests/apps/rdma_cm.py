#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs that connect through librdmacm: the server listens, as uroce's log says, the
client connects, and both end well."""
import os
import pathlib
import re
import tempfile

import checks
from pairs import collect
from programs import Failure, Program

UNANSWERED_MILLISECONDS = 14_000
ATTEMPTS = 10
LISTENS = "rdma_cm: listening"
# Where the server is, for IPv6, and where the place's own address is not the device's.
IPV4 = {"memif": "10.79.0.1"}
IPV6 = {"veth-udp": "fd77::1", "veth-af_packet": "fd77::1", "memif": "fd79::1"}


def logging(command):
    """The same, under `uroce run --log info`."""
    at = command.index("run") + 1
    return [*command[:at], "--log", "info", *command[at:]]


def ipv4(place):
    return IPV4.get(place.name, place.address)


def run(place, server, client, listens=LISTENS, stays=False):
    """Output of both. `stays`: a server that never ends by itself."""
    with Program(logging(place.server_command(server))) as serving:
        serving.wait_for_text(listens)
        with Program(place.client_command(client)) as asking:
            collect([serving, asking] if not stays else [asking, asking])
            return serving.text(), asking.text()


# Its main thread may close the channel between two calls of the thread that hears of events, after
# that one has heard of the end: on any device, and all is done by then.
CLOSED_TOO_SOON = re.compile(
    r"(client|server) DISCONNECT EVENT\.\.\.\n(?:(?!--- ).*\n)*rdma_get_cm_event: Bad file descriptor")


def run_rping(place, server, client, **options):
    for attempt in range(ATTEMPTS):
        try:
            return run(place, ["rping", "-s", *server], ["rping", "-c", *client], **options)
        except Failure as failure:
            if not CLOSED_TOO_SOON.search(str(failure)) or attempt == ATTEMPTS - 1:
                raise


def check_rping(place, _):
    options = ["-a", ipv4(place), "-C", "200", "-V"]
    run_rping(place, options, options)


def check_rping_over_ipv6(place, _):
    options = ["-a", IPV6.get(place.name, "::1"), "-C", "20", "-V"]
    run_rping(place, options, options)


def check_rping_with_a_server_that_stays(place, _):
    run_rping(place, ["-P", "-a", ipv4(place)], ["-a", ipv4(place), "-C", "20", "-V"], stays=True)


def check_an_event_that_goes_with_its_identifier(place, _):
    """At its end rping closes the channel that another of its threads waits on, perhaps woken for
    an event that is gone."""
    for _ in range(40):
        run_rping(place, ["-a", ipv4(place), "-C", "2"], ["-a", ipv4(place), "-C", "2"])


def check_ucmatose(place, _):
    options = ["-c", "20", "-C", "20", "-S", "5000"]
    run(place, ["ucmatose", *options], ["ucmatose", *options, "-s", ipv4(place)])


def check_udaddy(place, _):
    options = ["-c", "5", "-C", "20"]
    run(place, ["udaddy", *options], ["udaddy", *options, "-s", ipv4(place)])


def check_mckey(place, _):
    group = ["stdbuf", "-oL", "mckey", "-m", "239.1.2.3", "-C", "5"]
    sender = ipv4(place) if place.name.startswith("one") else ipv4(place)[:-1] + "2"
    run(place, [*group, "-b", ipv4(place)], [*group, "-s", "-b", sender], "joined dgid")


def check_a_storm_of_connections(place, _):
    """A thousand at once. Whoever is not answered any more gives up after 15 s, and no one may."""
    storm = ["cmtime", "-c", "1000"]
    _, text = run(place, storm, [*storm, "-s", ipv4(place)], stays=True)
    for step, milliseconds in re.findall(r"^(connect|disconnect) *: *\S+ +(\S+)", text, re.M):
        if float(milliseconds) > UNANSWERED_MILLISECONDS:
            raise Failure(f"cmtime: a {step} took {milliseconds} ms:\n{text}")


def check_rdma_client_and_server(place, _):
    run(place, ["rdma_server"], ["rdma_client", "-s", ipv4(place)])


def check_rdma_xclient_and_xserver(place, _):
    run(place, ["rdma_xserver", "-c", "x"], ["rdma_xclient", "-c", "x", "-s", ipv4(place)])


def check_rsockets(place, _):
    options = ["-S", "65536", "-C", "50"]
    run(place, ["rstream", *options], ["rstream", *options, "-s", ipv4(place)])
    options = ["-S", "4096", "-C", "50"]
    run(place, ["riostream", *options], ["riostream", *options, "-s", ipv4(place)])


def check_rcopy(place, _):
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "from"), pathlib.Path(folder, "to")
        source.write_bytes(os.urandom(3_000_000))
        run(place, ["rcopy"], ["rcopy", str(source), f"{ipv4(place)}:{target}"], stays=True)
        if source.read_bytes() != target.read_bytes():
            raise Failure("rcopy: the copy is not the original")


# perftest connects twice, and its client may be sooner than the server listens again: error 8 of a
# REJ, or 1 of a SIDR_REP, says that nobody does.
NOT_LISTENING_AGAIN = re.compile("RDMA_CM_EVENT_(REJECTED; error: 8|UNREACHABLE; error: 1)")


def check_perftest(place, _):
    for tool in (["ib_write_bw"], ["ib_read_lat"], ["ib_send_bw", "-c", "UD", "-s", "1024"]):
        command = [*tool, "-R", "-F", "-n", "200"]
        for attempt in range(ATTEMPTS):
            try:
                run(place, command, [*command, ipv4(place)])
                break
            except Failure as failure:
                if not NOT_LISTENING_AGAIN.search(str(failure)) or attempt == ATTEMPTS - 1:
                    raise


def check_librpma(place, rc_tool):
    pair = pathlib.Path(rc_tool).with_name("rpma_pair")
    if not pair.exists():
        raise checks.Missing("librpma-dev was missing when the tests were built")
    where = [ipv4(place), "7777"]
    run(place, [str(pair), "server", *where], [str(pair), "client", *where])


if __name__ == "__main__":
    checks.main(__doc__, [
        check_rping, check_rping_over_ipv6, check_rping_with_a_server_that_stays,
        check_an_event_that_goes_with_its_identifier, check_ucmatose, check_udaddy, check_mckey,
        check_a_storm_of_connections, check_rdma_client_and_server, check_rdma_xclient_and_xserver,
        check_rsockets, check_rcopy, check_perftest, check_librpma])
