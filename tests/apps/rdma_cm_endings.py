#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Connections through librdmacm that come and go for ever, and ends that are killed on the way: the
other hears of it in bounded time, and what comes afterwards connects."""
import contextlib
import os
import pathlib
import re
import time

import checks
from pairs import report
from programs import Failure, Program, free_port, wait_until
from rdma_cm import LISTENS, ipv4, logging

CONNECTIONS = int(os.environ.get("UROCE_TEST_CONNECTIONS", "10000"))
STORM = 500
CHANNELS = 3000
SPARE_KIB = 2048  # what an allocator may keep
SECONDS_TO_HEAR = 60
SURVIVES = "-"  # a step at which nobody holds
OVER = re.compile(r"event RDMA_CM_EVENT_(DISCONNECTED|UNREACHABLE|REJECTED|CONNECT_ERROR)")


def serve(place, tool, port, hold=""):
    return Program(place.server_command([tool, "serve", str(port), *filter(None, [hold])]))


def connect(place, tool, port, count=1, hold=""):
    return Program(place.client_command([tool, "connect", ipv4(place), str(port), str(count),
                                         *filter(None, [hold])]))


@contextlib.contextmanager
def serving(place, tool, hold=""):
    port = free_port()
    with serve(place, tool, port, hold) as server:
        server.wait_for_text("listens")
        yield server, port


def expect_to_connect(place, tool, port, server):
    with connect(place, tool, port) as client:
        if client.wait() != 0:
            raise Failure(report("nobody connects any more", [server, client]))


def what_it_holds(program):
    """Descriptors, and KiB of memory."""
    status = pathlib.Path(f"/proc/{program.pid}/status").read_text(encoding="ascii")
    return (len(os.listdir(f"/proc/{program.pid}/fd")),
            int(re.search(r"VmRSS:\s+(\d+)", status)[1]))


def check_connecting_and_disconnecting_for_ever(place, tool):
    with serving(place, tool) as (server, port):
        with connect(place, tool, port, CONNECTIONS // 10) as client:
            client.wait()
        before = what_it_holds(server)
        with connect(place, tool, port, CONNECTIONS) as client:
            if client.wait(600) != 0:
                raise Failure(report("the client failed", [server, client]))
            text = client.text()
        after = what_it_holds(server)
        ours = re.search(r"descriptors (\d+) and (\d+), KiB (\d+) and (\d+)", text)
        files, files_now, memory, memory_now = map(int, ours.groups())
        for what, was, now, spare in (("client's descriptors", files, files_now, 0),
                                      ("client's memory", memory, memory_now, SPARE_KIB),
                                      ("server's descriptors", before[0], after[0], 0),
                                      ("server's memory", before[1], after[1], SPARE_KIB)):
            if now > was + spare:
                raise Failure(report(f"the {what} grew from {was} to {now}", [server, client]))
        return text.strip()


def end_heard_by(survivor, programs, after=0):
    """The event that told it, among what it printed behind the first `after` characters."""
    deadline = time.monotonic() + SECONDS_TO_HEAR
    while True:
        has_ended = survivor.has_ended()  # before its text is read, which then is all of it
        heard = OVER.search(survivor.text()[after:])
        if heard:
            return heard[1]
        if has_ended or time.monotonic() > deadline:
            raise Failure(report("the survivor has not heard of the end", programs))
        time.sleep(0.002)


def check_a_client_that_is_killed(place, tool):
    heard = []
    with serving(place, tool, SURVIVES) as (server, port):
        for step, heard_before in (("resolved", ""), ("routed", ""), ("connecting", "REQUEST"),
                                   ("established", "ESTABLISHED"), ("sent", "ESTABLISHED")):
            events = len(server.text())
            with connect(place, tool, port, 1, step) as client:
                client.wait_for_text(f"holds at {step}")
                wait_until(lambda: heard_before in server.text()[events:],
                           f"the server hears of {heard_before}")
                client.kill()
                if heard_before:
                    heard.append(f"{step}: {end_heard_by(server, [server, client], events)}")
            events = len(server.text())
            expect_to_connect(place, tool, port, server)
            end_heard_by(server, [server], events)
    return ", ".join(heard)


def losing(command, percent, seed):
    """The same, with `uroce run --fault`."""
    at = command.index("run") + 1
    return [*command[:at], "--fault", f"loss={percent}%,seed={seed}", *command[at:]]


def check_a_storm_that_loses_what_it_may(place, _):
    """Up to a fifth of all messages, both ways."""
    storm = ["cmtime", "-c", str(STORM)]
    told = []
    for percent in (1, 20):
        with Program(losing(logging(place.server_command(storm)), percent, 3)) as server:
            server.wait_for_text(LISTENS)
            client_command = place.client_command([*storm, "-s", ipv4(place)])
            with Program(losing(client_command, percent, 5)) as client:
                if client.wait() != 0 or "error" in client.text():
                    raise Failure(report(f"{percent} % of loss", [server, client]))
                steps = re.findall(r"^((?:dis)?connect) *: *(\S+)", client.text(), re.M)
        told += [f"{percent} %:", *(f"{step} {milliseconds} ms" for step, milliseconds in steps)]
    return " ".join(told)


def check_channels_that_follow_closed_ones(place, tool):
    """The end of one is never taken for that of another."""
    with Program(place.client_command([tool, "reopen", ipv4(place), str(free_port()),
                                       str(CHANNELS)])) as program:
        if program.wait() != 0:
            raise Failure(report("a new channel has ended", [program]))


def check_an_event_that_nobody_reads(place, tool):
    """What announced it goes with it: a program that polls would wait in a read for nothing."""
    with Program(place.client_command([tool, "unread", ipv4(place)])) as program:
        if program.wait() != 0 or "migrated: second, destroyed: none" not in program.text():
            raise Failure(report("a channel is readable without an event", [program]))


def check_a_server_that_is_killed(place, tool):
    heard = []
    for step in ("listening", "request", "accepted", "established"):
        with serving(place, tool, step) as (server, port):
            if step == "listening":
                server.wait_for_text(f"holds at {step}")
                server.kill()
            with connect(place, tool, port, 1, SURVIVES) as client:
                server.wait_for_text(f"holds at {step}")
                if step == "established":
                    client.wait_for_text("ESTABLISHED")
                server.kill()
                heard.append(f"{step}: {end_heard_by(client, [server, client])}")
        with serving(place, tool) as (server, port):
            expect_to_connect(place, tool, port, server)
    return ", ".join(heard)


if __name__ == "__main__":
    checks.main(__doc__, [
        check_connecting_and_disconnecting_for_ever, check_a_storm_that_loses_what_it_may,
        check_a_client_that_is_killed, check_a_server_that_is_killed,
        check_channels_that_follow_closed_ones, check_an_event_that_nobody_reads], "cm_tool")
