#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Progress without the application's help, and next to no CPU time when there is nothing to do."""
import pathlib
import re
import statistics
import subprocess
import sys
import time

import checks
from pairs import collect, run_pair
from programs import DEADLINE_SECONDS, Failure, Program, free_port

# A target that sleeps shall serve at 0.9 of the rate of one that polls. Machines that test are noisy,
# and noise only takes away: so the best of each counts, and there are rounds until it is good enough.
# A moment in which nobody else wants the machine may be given to one of the two only: so the median of
# what the rounds say, whose two ran back to back, may show it as well. (The best of the rounds would
# show nothing: on such a machine there is one of 2.6.)
RATIO_MIN = 0.9
ROUNDS_MIN, ROUNDS_MAX = 3, 15
IDLE_SECONDS = 10
IDLE_CPU_SECONDS = {"af_packet": 0.03 * IDLE_SECONDS, "memif": 0.03 * IDLE_SECONDS}
IDLE_CPU_SECONDS_ELSE = 0.01
PINGPONG_IDLE_SECONDS = 2


def rate(place, tool, target, operation, size):
    driver = [tool, "drive", "--operation", operation, "--bytes", size, "--seconds", "0.5"]
    _, text = run_pair(place, [tool, target], driver)
    return float(re.search(r"rate (\d+)", text)[1])


def compare(place, tool, operation, size):
    best = {"sleep": 0, "poll": 0}
    ratios = []
    for number in range(1, ROUNDS_MAX + 1):
        rates = {target: rate(place, tool, target, operation, size) for target in best}
        best = {target: max(best[target], rates[target]) for target in best}
        ratio = best["sleep"] / best["poll"]
        ratios.append(rates["sleep"] / rates["poll"])
        median = statistics.median(ratios)
        text = (f"{best['sleep']:.0f}/s asleep, {best['poll']:.0f}/s polling: ratio {ratio:.2f}, "
                f"{median:.2f} in the median round, after {number} rounds")
        if number >= ROUNDS_MIN and max(ratio, median) >= RATIO_MIN:
            return text
    raise Failure(text)


def check_sleeping_target_serves_write(place, tool):
    return compare(place, tool, "write", "65536")


def check_sleeping_target_serves_read(place, tool):
    return compare(place, tool, "read", "65536")


def check_sleeping_target_serves_atomics(place, tool):
    return compare(place, tool, "fetch_add", "8")


def cpu_seconds_of(programs, seconds):
    """Of each, while nothing is asked of them. The one place where time itself is waited for."""
    before = [program.cpu_seconds() for program in programs]
    time.sleep(seconds)
    return [program.cpu_seconds() - start for program, start in zip(programs, before)]


def check_idle_connection_costs_no_cpu(place, tool):
    limit = IDLE_CPU_SECONDS.get(place.name.rsplit("-", 1)[-1], IDLE_CPU_SECONDS_ELSE)
    with place.running_pair([tool, "sleep"]) as programs:
        for program in programs:
            program.wait_for_text("ready")
        used = cpu_seconds_of(programs, IDLE_SECONDS)
        for program in programs:
            if program.has_ended():
                raise Failure(f"{program} has ended:\n{program.text()}")
    text = ", ".join(f"{seconds * 1000:.1f} ms" for seconds in used) + f" in {IDLE_SECONDS} s"
    if max(used) > limit:
        raise Failure(f"{text}; at most {limit * 1000:.0f} ms are expected")
    return text


def check_pingpong_with_events_sleeps(place, _):
    """The stock server is given a client that connects and never sends."""
    port = free_port()
    command = ["ibv_rc_pingpong", "-e", "-g", "0", "-p", str(port)]
    script = str(pathlib.Path(__file__).with_name("silent_client.py"))
    with Program(place.server_command(command)) as server:
        if not server.wait_for_listener(port):
            raise Failure(server.text())
        with Program([*place.client_prefix, sys.executable, script, str(port), place.address],
                     stdin=subprocess.PIPE) as client:
            client.wait_for_text("ready")
            (used,) = cpu_seconds_of([server], PINGPONG_IDLE_SECONDS)
            client.process.stdin.close()
            if server.has_ended():
                raise Failure(server.text())
    if used > 0.02:
        raise Failure(f"{used * 1000:.1f} ms of CPU in {PINGPONG_IDLE_SECONDS} s")
    return f"{used * 1000:.1f} ms in {PINGPONG_IDLE_SECONDS} s"


def check_ending_after_the_last_completion_does_not_fail_the_peer(place, tool):
    run_pair(place, [tool, "exit", "--count", "200"], seconds=2 * DEADLINE_SECONDS)


def ping(place, tool, *disturbances, connections="1", echo=()):
    for options in ([], ["--events"]):
        server = [tool, "echo", "--count", "64", "--connections", connections, *options, *echo]
        client = [tool, "ping", "--count", "64", *options, *disturbances]
        with place.running_pair(server, client) as programs:
            collect(programs)


def check_pinned_to_one_cpu(place, tool):
    ping(place, tool, "--disturb", "pin", echo=["--disturb", "pin"])


def check_all_signals_blocked(place, tool):
    ping(place, tool, "--disturb", "block-signals", echo=["--disturb", "block-signals"])


def check_storm_of_alarms(place, tool):
    ping(place, tool, "--disturb", "alarms", echo=["--disturb", "alarms"])


def check_children_that_exit(place, tool):
    ping(place, tool, "--disturb", "fork")


def check_children_that_close_every_descriptor(place, tool):
    ping(place, tool, "--disturb", "fork-close")


def check_child_with_a_context_of_its_own(place, tool):
    ping(place, tool, "--disturb", "own", connections="2")


def check_fork_init(place, tool):
    ping(place, tool, "--disturb", "fork-init")


def check_exec_with_a_context_open(place, tool):
    ping(place, tool, "--disturb", "exec")


if __name__ == "__main__":
    checks.main(__doc__, [function for name, function in list(globals().items())
                          if name.startswith("check_")])
