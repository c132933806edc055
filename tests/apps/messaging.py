#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The libraries that message passing stands on, by their own tools: UCX over RC and UD, connected by
itself and by rdma_cm, and libfabric, which takes no loopback interface."""
import checks
from pairs import collect
from programs import Failure, Program, free_port
from rdma_cm import LISTENS, logging


def ucx(transports, *command):
    """`transports`: rc_v is RC over verbs, and UD for the first messages; ud_v is UD alone."""
    return ["env", f"UCX_TLS={transports},self", "UCX_NET_DEVICES=uroce0:1",
            "UCX_SOCKADDR_TLS_PRIORITY=rdmacm", "UCX_LOG_LEVEL=error", *command]


def run_ucx_perftest(place, transports, *options):
    checks.needs("ucx_perftest")
    port = free_port()
    command = ucx(transports, "ucx_perftest", "-p", str(port), *options)
    with Program(place.server_command(command)) as serving:
        if not serving.wait_for_listener(port):
            raise Failure(f"{serving}:\n{serving.text()}")
        with Program(place.client_command([*command, place.address])) as asking:
            collect([serving, asking])
            if "Final:" not in asking.text():
                raise Failure(f"{asking}:\n{asking.text()}")


def check_ucx_over_rc(place, _):
    for test, size in (("tag_lat", "8"), ("tag_bw", "65536"), ("ucp_get", "1048576"),
                       ("ucp_fadd", "8")):
        run_ucx_perftest(place, "rc_v", "-t", test, "-s", size, "-n", "200", "-w", "20")


def check_ucx_over_ud(place, _):
    for test, size in (("tag_lat", "8"), ("tag_bw", "65536"), ("stream_bw", "1024")):
        run_ucx_perftest(place, "ud_v", "-t", test, "-s", size, "-n", "200", "-w", "20")


def check_ucx_that_sleeps_for_events(place, _):
    """It polls, arms and sleeps: what comes between has to wake it. Once in three it slept."""
    for transports in ("rc_v", "ud_v"):
        for _ in range(2):
            run_ucx_perftest(place, transports, "-t", "tag_lat", "-n", "200", "-w", "20", "-E",
                             "sleep")


def check_ucx_without_its_protocols(place, _):
    for transport in ("rc_verbs", "ud_verbs"):
        run_ucx_perftest(place, "all", "-t", "am_lat", "-x", transport, "-d", "uroce0:1", "-n",
                         "200", "-w", "20")


def check_ucx_connected_by_rdma_cm(place, _):
    """io_demo compares what it reads and writes with what should be there."""
    checks.needs("io_demo")
    port = str(free_port())
    for transports in ("rc_v", "ud_v"):
        demo = ucx(transports, "io_demo", "-p", port, "-d", "4096:65536", "-q")
        with Program(logging(place.server_command(demo))) as serving:
            serving.wait_for_text(LISTENS)
            client = [*demo, "-i", "100", "-o", "read,write", place.address]
            with Program(place.client_command(client)) as asking:
                collect([asking, asking])
                if "Client exit with status 'OK'" not in asking.text():
                    raise Failure(f"{asking}:\n{asking.text()}")


def run_fi_pingpong(place, provider, endpoint):
    checks.needs("fi_pingpong")
    port = free_port()
    command = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "10", "-c"]  # -c: compares
    with Program(place.server_command([*command, "-B", str(port)])) as serving:
        if not serving.wait_for_listener(port):
            raise Failure(f"{serving}:\n{serving.text()}")
        client = [*command, "-P", str(port), place.address]
        with Program(place.client_command(client)) as asking:
            collect([serving, asking])


def check_libfabric(place, _):
    for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
        run_fi_pingpong(place, provider, endpoint)


if __name__ == "__main__":
    checks.main(__doc__, [check_ucx_over_rc, check_ucx_over_ud, check_ucx_that_sleeps_for_events,
                          check_ucx_without_its_protocols, check_ucx_connected_by_rdma_cm,
                          check_libfabric])
