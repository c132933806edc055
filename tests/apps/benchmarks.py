#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs that measure: qperf and fio through rdma_cm, iperf as a plain TCP program over
rsockets. What they move has to arrive; how fast is no matter here."""
import os
import pathlib
import re

import checks
from pairs import collect
from programs import Failure, Program, free_port, wait_until
from rdma_cm import logging

ATTEMPTS = 20
# qperf's server tells its port before it listens to it, so that the client may be sooner.
NOT_LISTENING_YET = "Event rejected"
QPERF_TESTS = ["rc_bw", "rc_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat", "rc_rdma_read_bw",
               "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add"]
MEASURED = re.compile(r"(?:bw|latency|msg_rate) +=  [\d.]+ \S+")
LISTENS = "rdma_cm: listening"


def run_qperf(place, port, test):
    """One test, of a server that stays."""
    for attempt in range(ATTEMPTS):
        command = ["qperf", place.address, "-lp", str(port), "-t", "1", "-to", "60",
                   "-cm", "1", test]
        with Program(place.client_command(command)) as asking:
            status, text = asking.wait(), asking.text()
        if status == 0 and MEASURED.search(text):
            return
        if NOT_LISTENING_YET not in text or attempt == ATTEMPTS - 1:
            raise Failure(f"{asking} ended with {status}:\n{text}")


def check_qperf(place, _):
    checks.needs("qperf")
    port = free_port()
    with Program(place.server_command(["qperf", "-lp", str(port)])) as serving:
        if not serving.wait_for_listener(port):
            raise Failure(f"{serving}:\n{serving.text()}")
        for test in QPERF_TESTS:
            run_qperf(place, port, test)


def run_fio(place, server, client):
    # Threads, because its processes leave our process group.
    checks.needs("fio")
    common = ["fio", "--thread", "--ioengine=rdma", f"--port={free_port()}", "--bs=64k",
              "--size=16m", "--verify_state_save=0"]
    source = [*common, "--name=client", f"--hostname={place.address}", "--rw=write", *client]
    sink = [*common, "--name=server", "--rw=read", *server]
    folder = os.environ["XDG_RUNTIME_DIR"]  # for what fio may leave
    with Program(logging(place.server_command(sink)), cwd=folder) as serving:
        serving.wait_for_text(LISTENS)
        with Program(place.client_command(source), cwd=folder) as asking:
            collect([serving, asking])
            return serving.text(), asking.text()


def check_fio_writes_and_reads(place, _):
    for verb in ("write", "read"):
        _, text = run_fio(place, ["--iodepth=64"], [f"--verb={verb}", "--iodepth=64"])
        if "io=16.0MiB" not in text:
            raise Failure(f"fio: a {verb} has not moved everything:\n{text}")


VERIFY = "--verify=crc32c"


def check_fio_verifies_what_was_sent(place, _):
    """fio sends without asking for RNR retries: the receiver's queue has to be the longer one."""
    run_fio(place, ["--iodepth=64", VERIFY],
            ["--iodepth=1", "--verb=send", VERIFY, "--do_verify=0"])


RSOCKETS = pathlib.Path("/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so")


def check_iperf_over_rsockets(place, _):
    checks.needs("iperf")
    environment = {**os.environ, "LD_PRELOAD": str(RSOCKETS)}
    port = str(free_port())
    with Program(logging(place.server_command(["iperf", "-s", "-p", port])),
                 env=environment) as serving:
        serving.wait_for_text(LISTENS)
        command = ["iperf", "-c", place.address, "-p", port, "-n", "16M", "-P", "2"]
        with Program(place.client_command(command), env=environment) as asking:
            collect([asking, asking])
            wait_until(lambda: serving.text().count("16.0 MBytes") == 2,
                       f"{serving} has received twice 16 MBytes:\n{serving.text()}")


if __name__ == "__main__":
    checks.main(__doc__, [check_qperf, check_fio_writes_and_reads,
                          check_fio_verifies_what_was_sent, check_iperf_over_rsockets])
