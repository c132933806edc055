# SPDX-License-Identifier: BSD-2-Clause
"""A server and a client program, each on its own CPU, and the client's output.

The server gets the first CPU this process may use and the client the second, whoever the competitor
is. Whatever happens to this one, no process is left behind.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

LISTEN = "0A"
DEADLINE_SECONDS = 60
CPUS = sorted(os.sched_getaffinity(0))
SERVER_CPU, CLIENT_CPU = CPUS[0], CPUS[-1]


class Skip(Exception):
    """This machine cannot run it, and why; asking again in the next round is no use."""


class Failure(Exception):
    """It ran, and did not end well."""


def need(program):
    path = shutil.which(program)
    if path is None:
        raise Skip(f"{program} is not installed")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(cpu, command, environment):
    return ["taskset", "-c", str(cpu), "env", *(f"{k}={v}" for k, v in environment.items()),
            *command]


def start(command):
    """In a process group of its own, and gone when this process is."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)


def stop(process):
    """What it printed; it and its children are gone afterwards."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return "" if process.stdout.closed else process.communicate()[0]


def finish(process, deadline, name):
    try:
        text, _ = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Failure(f"{name} did not end in {DEADLINE_SECONDS} s\n{stop(process)}") from None
    if process.returncode != 0:
        raise Failure(f"{name} ended with {process.returncode}\n{text}")
    return text


def is_listening(port):
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


def wait_for_listener(process, port, deadline):
    while not is_listening(port):
        if process.poll() is not None:
            raise Failure(f"the server ended before it listened\n{stop(process)}")
        if time.monotonic() > deadline:
            raise Failure(f"the server did not listen in time\n{stop(process)}")
        time.sleep(0.005)


def run_alone(command, cpu=None):
    """The output of one program, on its own."""
    process = start(command if cpu is None else pinned(cpu, command, {}))
    try:
        return finish(process, time.monotonic() + DEADLINE_SECONDS, command[0])
    finally:
        stop(process)


def run_pair(server, client, port, environment=None):
    """The client's output, or a Failure with that of both. The server goes with the client."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    environment = environment or {}
    running = [start(pinned(SERVER_CPU, server, environment))]
    try:
        wait_for_listener(running[0], port, deadline)
        running.append(start(pinned(CLIENT_CPU, client, environment)))
        try:
            return finish(running[1], deadline, "the client")
        except Failure as failure:
            raise Failure(f"{failure}\n{stop(running[0])}") from None
    finally:
        for process in running:
            stop(process)
