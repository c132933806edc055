# SPDX-License-Identifier: BSD-2-Clause
"""Programs that a test starts: each has a process group of its own, writes into a file that can be
looked at while it runs, and is killed by the kernel when the test dies."""
import ctypes
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import tempfile
import time

LISTEN = "0A"
PR_SET_PDEATHSIG = 1
# For everything that waits: generous, since machines that test are busy.
DEADLINE_SECONDS = float(os.environ.get("UROCE_TEST_DEADLINE", "120"))
LIBC = ctypes.CDLL(None)


class Failure(Exception):
    """What went wrong, with the output of the programs and the commands to repeat it."""


def wait_until(condition, what, seconds=DEADLINE_SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds:.0f} s in vain until {what}")
        time.sleep(0.002)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A running program; `with` ends it and all it started."""

    def __init__(self, command, **options):
        self.command = command
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, **{
            "stdin": subprocess.DEVNULL, "stdout": self.output, "stderr": subprocess.STDOUT,
            "text": True, "start_new_session": True, "preexec_fn": die_with_parent, **options})
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def text(self):
        self.output.flush()
        return os.pread(self.output.fileno(), 1 << 20, 0).decode(errors="replace")

    def has_ended(self):
        return self.process.poll() is not None

    def signal(self, number):
        os.killpg(self.pid, number)

    def kill(self):
        try:
            self.signal(signal.SIGKILL)
        except ProcessLookupError:
            pass  # it and all of its own have ended and were collected
        self.process.wait()

    def wait(self, seconds=DEADLINE_SECONDS):
        """Its exit status; None when it does not end in time, and then it is killed."""
        try:
            return self.process.wait(max(0.1, seconds))
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def wait_for_text(self, text):
        wait_until(lambda: text in self.text() or self.has_ended(), f"{self} prints {text!r}")
        if text not in self.text():
            raise Failure(f"{self} ended without {text!r}:\n{self.text()}")

    def is_listening(self, port):
        """Does anyone listen on TCP `port` in the program's network namespace?"""
        for table in ("tcp", "tcp6"):
            try:
                lines = pathlib.Path(f"/proc/{self.pid}/net/{table}").read_text().splitlines()[1:]
            except OSError:
                continue
            for fields in map(str.split, lines):
                if fields[3] == LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    return True
        return False

    def wait_for_listener(self, port):
        """False when the program ended before it listened."""
        wait_until(lambda: self.has_ended() or self.is_listening(port),
                   f"{self} listens on port {port}")
        return not self.has_ended() or self.is_listening(port)

    def cpu_seconds(self):
        """By the clock that counts nanoseconds, of all its threads: /proc/PID/stat counts ticks of 10 ms."""
        clock = ctypes.c_int()
        error = LIBC.clock_getcpuclockid(self.pid, ctypes.byref(clock))
        if error != 0:
            raise OSError(error, os.strerror(error))
        return time.clock_gettime(clock.value)

    def __str__(self):
        return shlex.join(self.command)


def free_port(first=20000, last=32000, _used=set()):  # pylint: disable=dangerous-default-value
    """A TCP port nobody has, below those that the kernel gives to clients."""
    for offset in range(last - first):
        port = first + (os.getpid() * 37 + offset) % (last - first)
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
