#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Peers that are killed or stopped at any moment: the other end gets IBV_WC_RETRY_EXC_ERR after its
own retries, neighbours notice nothing, and the next start works."""
import contextlib
import os
import pathlib
import random
import signal
import time

import checks
from pairs import collect, report, run_pair
from programs import Failure, wait_until

ROUNDS = 20
SEED = int(os.environ.get("UROCE_TEST_SEED", "20"))
RETRY_EXCEEDED = "status 12 "
# 16 ms and three retries: a peer that has gone is given up within a tenth of a second.
HASTY = ["--timeout", "12", "--retries", "3"]


def drive(tool, operation="write", seconds="60", size="65536"):
    return [tool, "drive", "--operation", operation, "--seconds", seconds, "--bytes", size, *HASTY]


@contextlib.contextmanager
def neighbours(place, tool):
    """A pair on the same device that checks every byte all the time, and must end well."""
    server = [tool, "echo", "--count", "1000000000", "--bytes", "3000"]
    client = [tool, "ping", "--count", "1000000000", "--bytes", "3000"]
    with place.running_pair(server, client) as programs:
        programs[1].wait_for_text("ready")
        yield
        if any(program.has_ended() for program in programs):
            raise Failure(report("the neighbours were disturbed", programs))


def expect_retry_exceeded(programs, survivor):
    status = survivor.wait(60)
    if status != 3 or RETRY_EXCEEDED not in survivor.text():
        raise Failure(report(f"the survivor ended with {status}, not by {RETRY_EXCEEDED}", programs))


def wait_for_a_moment(chance):
    """A random moment is what is tested, so here time is right."""
    time.sleep(chance.uniform(0, 0.05))


def kill_one_side(place, tool, chance):
    """The target of a driver, or the driver of a target that has work of its own towards it."""
    operation = chance.choice(["write", "read", "fetch_add"])
    with place.running_pair([tool, "sleep"], drive(tool, operation)) as programs:
        programs[1].wait_for_text("ready")
        wait_for_a_moment(chance)
        programs[0].kill()
        expect_retry_exceeded(programs, programs[1])
    with place.running_pair(drive(tool, operation)) as programs:  # both drive
        programs[1].wait_for_text("ready")
        wait_for_a_moment(chance)
        programs[1].kill()
        expect_retry_exceeded(programs, programs[0])


def runtime_files():
    """How many files and how many bytes of them the runtime directory holds."""
    found = [path for path in pathlib.Path(os.environ["XDG_RUNTIME_DIR"]).rglob("*")
             if path.is_file() and not path.is_symlink()]
    return len(found), sum(path.stat().st_blocks * 512 for path in found)


def check_killed_at_any_moment(place, tool):
    chance = random.Random(SEED)
    with neighbours(place, tool):
        kill_one_side(place, tool, chance)
        before = runtime_files()
        for _ in range(ROUNDS - 1):
            kill_one_side(place, tool, chance)
        after = runtime_files()
    run_pair(place, [tool, "echo"], [tool, "ping"])
    if after[0] > before[0] + 8 or after[1] > before[1] + (1 << 20):
        raise Failure(f"files of the dead pile up: {before} became {after} (files, bytes)")
    return f"{ROUNDS} rounds, UROCE_TEST_SEED={SEED}"


def check_killed_in_a_bandwidth_test_of_perftest(place, tool):
    chance = random.Random(SEED)
    command = ["ib_write_bw", "-x", "0", "-F", "-D", "60", "-u", "12"]
    with neighbours(place, tool):
        for _ in range(3):
            with place.running_pair(command) as programs:
                wait_until(lambda: programs[1].cpu_seconds() > 0.1, "the client is under way")
                wait_for_a_moment(chance)
                programs[0].kill()
                status = programs[1].wait(60)
                if status in (None, 0) or "Failed status 12" not in programs[1].text():
                    raise Failure(report(f"the client ended with {status}", programs))
            run_pair(place, ["ib_write_bw", "-x", "0", "-F", "-n", "20"])


def check_stopped_peer_is_given_up(place, tool):
    with neighbours(place, tool):
        with place.running_pair([tool, "sleep"], drive(tool)) as programs:
            programs[1].wait_for_text("ready")
            programs[0].signal(signal.SIGSTOP)
            expect_retry_exceeded(programs, programs[1])
        run_pair(place, [tool, "echo"], [tool, "ping"])


def check_stopped_for_a_moment_is_not(place, tool):
    """Less than the seven retries of 67 ms that the peers of a stopped program have."""
    chance = random.Random(SEED)
    driver = [tool, "drive", "--seconds", "1", "--bytes", "65536"]
    with place.running_pair([tool, "sleep"], driver) as programs:
        programs[1].wait_for_text("ready")
        wait_for_a_moment(chance)
        programs[0].signal(signal.SIGSTOP)
        wait_for_a_moment(chance)
        programs[0].signal(signal.SIGCONT)
        collect(programs)


def check_child_that_outlives_its_parent(place, tool):
    """It holds what it inherited: descriptors, mappings, perhaps locks."""
    with neighbours(place, tool):
        server = [tool, "sleep", "--disturb", "child-stays"]
        with place.running_pair(server, drive(tool)) as programs:
            programs[1].wait_for_text("ready")
            os.kill(programs[0].pid, signal.SIGKILL)  # it alone, not its group
            expect_retry_exceeded(programs, programs[1])
            run_pair(place, [tool, "echo"], [tool, "ping"])
            run_pair(place, [tool, "sleep"], drive(tool, "read", "0.1"))


if __name__ == "__main__":
    checks.main(__doc__, [function for name, function in list(globals().items())
                          if name.startswith("check_")])
