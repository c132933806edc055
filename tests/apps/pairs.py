# SPDX-License-Identifier: BSD-2-Clause
"""A server and a client program, unmodified, each under `uroce run`, and what became of them.

A Place says where the two run and over which datapath; run_pair starts the server, waits until it
listens (by looking at the kernel's table of sockets, not by time), starts the client, and collects
both. Whatever happens, no process is left behind: each one has a process group of its own, and is
killed by the kernel when this script dies.
"""
import ctypes
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import time

LISTEN = "0A"
PR_SET_PDEATHSIG = 1
# For everything that waits: generous, since machines that test are busy.
DEADLINE_SECONDS = float(os.environ.get("UROCE_TEST_DEADLINE", "120"))
LIBC = ctypes.CDLL(None)


class Failure(Exception):
    """What went wrong, with the output of the programs and the commands to repeat it."""


class Refused(Exception):
    """The program's own option parser did not take the options; the text is its output."""


class Place:
    """Where a pair of programs runs: what each side is wrapped in, and the server's address.

    `server` and `client` are options of `uroce run`; `*_prefix` stands before everything (to enter
    a namespace, to become another user); `*_device` is for the program ("-d uroce1"), where a side
    has more devices than one.
    """

    def __init__(self, name, uroce, server, client, address="127.0.0.1", server_prefix=(),
                 client_prefix=(), server_device=(), client_device=(), datapath=""):
        self.name = name
        self.uroce = uroce
        self.server, self.client = list(server), list(client)
        self.address = address
        self.server_prefix, self.client_prefix = list(server_prefix), list(client_prefix)
        self.server_device, self.client_device = list(server_device), list(client_device)
        self.datapath = datapath
        self.received_bytes = None  # where the interface's counter proves the path

    def server_command(self, command):
        return [*self.server_prefix, self.uroce, "run", *self.server, "--", *command,
                *self.server_device]

    def client_command(self, command):
        return [*self.client_prefix, self.uroce, "run", *self.client, "--", *command,
                *self.client_device]

    def output(self, command):
        """Of a program that needs no peer, on the server's side."""
        return subprocess.run(self.server_command(command), check=True, capture_output=True,
                              text=True, timeout=DEADLINE_SECONDS).stdout


def free_port(first=20000, last=32000, _used=set()):  # pylint: disable=dangerous-default-value
    """A TCP port nobody has, below those that the kernel gives to clients."""
    for port in range(first + os.getpid() * 37 % (last - first), 2 * last):
        port = first + (port - first) % (last - first)
        if port in _used:
            continue
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::", port))
            except OSError:
                continue
        _used.add(port)
        return port
    raise Failure("no free TCP port")


def is_listening(pid, port):
    """Does anyone listen on TCP `port` in the network namespace of `pid`?"""
    for table in ("tcp", "tcp6"):
        try:
            lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command, **options):
    return subprocess.Popen(command, **{
        "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT,
        "text": True, "start_new_session": True, "preexec_fn": die_with_parent, **options})


def stop(process):
    """Ends the process and all it started; what it had printed."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it and all of its own have ended and were collected
    if process.stdout.closed:
        return ""  # whoever collected it has the text
    return process.communicate()[0] or ""


def wait_until(condition, what, seconds=DEADLINE_SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds:.0f} s in vain until {what}")
        time.sleep(0.002)


def wait_for_listener(process, port):
    """False when the server ended before it listened."""
    wait_until(lambda: process.poll() is not None or is_listening(process.pid, port),
               f"the server listens on port {port}")
    return process.poll() is None or is_listening(process.pid, port)


def report(problem, commands, texts):
    lines = [problem]
    for side, command, text in zip(("server", "client"), commands, texts):
        lines += [f"--- {side}: {shlex.join(command)}", (text or "").rstrip()]
    return "\n".join(lines)


def run_pair(place, server, client=None, port=None, seconds=DEADLINE_SECONDS):
    """Output of server and client. Refused when the server does not get as far as listening."""
    port = port or free_port()
    commands = [place.server_command([*server, "-p", str(port)]),
                [*place.client_command([*(client or server), "-p", str(port)]), place.address]]
    deadline = time.monotonic() + seconds
    processes, texts, problem = [start(commands[0])], ["", ""], ""
    try:
        if not wait_for_listener(processes[0], port):
            raise Refused(processes[0].communicate()[0])
        processes.append(start(commands[1]))
        for number in (1, 0):
            side = ("server", "client")[number]
            try:
                texts[number], _ = processes[number].communicate(
                    timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                problem = problem or f"the {side} did not end within {seconds:.0f} s"
                texts[number] = stop(processes[number])
            if processes[number].returncode != 0:
                problem = problem or f"the {side} ended with {processes[number].returncode}"
                deadline = min(deadline, time.monotonic() + 5)  # the other one may have a reason
    finally:
        for process in processes:
            stop(process)
    if problem:
        raise Failure(report(problem, commands, texts))
    return texts
