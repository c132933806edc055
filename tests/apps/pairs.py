# SPDX-License-Identifier: BSD-2-Clause
"""A server and a client program, unmodified, each under `uroce run`, and what became of them.

A Place says where the two run and over which datapath; run_pair starts the server, waits until it
listens (by looking at the kernel's table of sockets, not by time), starts the client, and collects
both.
"""
import contextlib
import subprocess
import time

from programs import DEADLINE_SECONDS, Failure, Program, free_port


class Refused(Exception):
    """The program's own option parser did not take the options; the text is its output."""


class Place:
    """Where a pair of programs runs: what each side is wrapped in, and the server's address.

    `server` and `client` are options of `uroce run`; `*_prefix` stands before everything (to enter
    a namespace, to become another user); `*_device` is for the program ("-d uroce1"), where a side
    has more devices than one.
    """

    def __init__(self, name, uroce, server, client, address="127.0.0.1", server_prefix=(),
                 client_prefix=(), server_device=(), client_device=()):
        self.name = name
        self.uroce = uroce
        self.server, self.client = list(server), list(client)
        self.address = address
        self.server_prefix, self.client_prefix = list(server_prefix), list(client_prefix)
        self.server_device, self.client_device = list(server_device), list(client_device)
        self.received_bytes = None  # where the interface's counter proves the path

    def server_command(self, command):
        return [*self.server_prefix, self.uroce, "run", *self.server, "--", *command,
                *self.server_device]

    def client_command(self, command):
        return [*self.client_prefix, self.uroce, "run", *self.client, "--", *command,
                *self.client_device]

    def output(self, command):
        """Of a program that needs no peer, on the server's side."""
        done = subprocess.run(self.server_command(command), check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=DEADLINE_SECONDS)
        if done.returncode != 0:
            raise Failure(f"{command[0]} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    @contextlib.contextmanager
    def running_pair(self, server, client=None, **client_options):
        """Both programs, started; where they get to is the caller's business."""
        port = free_port()
        with Program(self.server_command([*server, "-p", str(port)])) as serving:
            if not serving.wait_for_listener(port):
                raise Refused(serving.text())
            with Program([*self.client_command([*(client or server), "-p", str(port)]),
                          self.address], **client_options) as asking:
                yield serving, asking


def report(problem, programs):
    lines = [problem]
    for side, program in zip(("server", "client"), programs):
        lines += [f"--- {side}: {program}", program.text().rstrip()]
    return "\n".join(lines)


def run_pair(place, server, client=None, seconds=DEADLINE_SECONDS):
    """Output of server and client. Refused when the server does not get as far as listening."""
    with place.running_pair(server, client) as programs:
        collect(programs, seconds)
        return [program.text() for program in programs]


def collect(programs, seconds=DEADLINE_SECONDS):
    """Waits for server and client; both must end well."""
    deadline = time.monotonic() + seconds
    problem = ""
    for side, program in reversed(list(zip(("server", "client"), programs))):
        status = program.wait(deadline - time.monotonic())
        if status == 0:
            continue
        ending = "did not end in time" if status is None else f"ended with {status}"
        problem = problem or f"the {side} {ending}"
        deadline = min(deadline, time.monotonic() + 5)  # the other one may have a reason
    if problem:
        raise Failure(report(problem, programs))
