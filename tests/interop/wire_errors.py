#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What fails between uroce and Linux's rxe, each side as requester and as responder: both must say
with which status, and connections made after it must work."""
import re

import interop_checks
from interop_checks import both_ways, expect
from operations import run_tool

ACCESS, INVALID, OPERATION = ("remote access error", "remote invalid request error",
                              "remote operation error")
FLUSHED, LENGTH, NOTHING = "Work Request Flushed Error", "local length error", "nothing"
# request: (the requester's status, the responder's). They end the connection at the responder, whose
# receive is flushed then if it is not what tells of the failure.
FAILING = {
    "wrong_key_write:64": (ACCESS, FLUSHED),
    "wrong_key_write:9000": (ACCESS, FLUSHED),
    "wrong_key_write_imm:64": (ACCESS, "local access error"),
    "wrong_key_read:64": (ACCESS, FLUSHED),
    "wrong_key_read:9000": (ACCESS, FLUSHED),
    "wrong_key_add": (ACCESS, FLUSHED),
    "beyond_write:64": (ACCESS, FLUSHED),
    "beyond_read:9000": (ACCESS, FLUSHED),
    "unaligned_add": (INVALID, FLUSHED),
    "long_send:64": (INVALID, LENGTH),
    "long_send:9000": (INVALID, LENGTH),
    "window_read:64": (ACCESS, FLUSHED),
    "window_beyond:64": (ACCESS, FLUSHED),
    "window_invalidated:64": (ACCESS, FLUSHED),
    "window_unbound:64": (ACCESS, FLUSHED),
}
# What rxe does otherwise (docs/INTEROP.md).
FAILING_AT_RXE = {
    "wrong_key_write_imm:64": (ACCESS, ACCESS),
    "long_send:64": (OPERATION, "local QP operation error"),
    "long_send:9000": (OPERATION, "local QP operation error"),
    "window_beyond:64": ("success", NOTHING),
}
REFUSED_BY_RXE = {"unaligned_add"}  # as requester, when it is posted
# The status of one whose queue pair is gone is nothing.
RNR_EXCEEDED, RETRY_EXCEEDED = "RNR retry counter exceeded", "transport retry counter exceeded"
GIVEN_UP = {
    "never_send:64": (RNR_EXCEEDED, NOTHING),
    "never_send:9000": (RNR_EXCEEDED, NOTHING),
    "broken_send:64": (RETRY_EXCEEDED, NOTHING),
    "broken_write:9000": (RETRY_EXCEEDED, NOTHING),
    "broken_read:9000": (RETRY_EXCEEDED, NOTHING),
    "midway_write:8388608": (RETRY_EXCEEDED, NOTHING),
}
WORKS = "send:9000 write:9000 read:9000"


def run_table(server, client, table, options):
    requests = " ".join(f"{request} {WORKS}" for request in table)
    text = run_tool(server, client, requests, options=options)
    rows = re.findall(r"^(\w+): requester: (.*); responder: (.*)$", text, re.M)
    got = [(name, *statuses) for name, *statuses in rows]
    expected = [(request.partition(":")[0], *statuses) for request, statuses in table.items()]
    expect(got == expected, "\n".join(f"{got_row}, not {due}" for got_row, due in
                                      zip(got, expected) if got_row != due) or text)


def refused(server, client):
    differs = FAILING_AT_RXE if server.name == "rxe" else {}
    table = {request: differs.get(request, statuses) for request, statuses in FAILING.items()
             if client.name != "rxe" or request not in REFUSED_BY_RXE}
    run_table(server, client, table, "-m 1024")


def given_up(server, client):
    run_table(server, client, GIVEN_UP, "-m 1024 -t 16 -r 2 -R 2")


def abandoned(server, client):
    """The requester's queue pair goes in the middle of its request."""
    run_tool(server, client, f"abandoned_write:8388608 {WORKS} abandoned_read:8388608 {WORKS}")


def make_checks(_):
    return [check for function in (refused, given_up, abandoned) for check in both_ways(function)]


if __name__ == "__main__":
    interop_checks.main(interop_checks.parser_for(__doc__), make_checks)
