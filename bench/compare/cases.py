# SPDX-License-Identifier: BSD-2-Clause
"""Everything that is measured, in the order of the table."""
import dataclasses
import os
from typing import Callable

import measure

GB, RATE, MICROSECONDS, NANOSECONDS = "GB/s", "M/s", "us", "ns"
SIZES = {65536: "64 KiB", 2 ** 20: "1 MiB"}
PATH_MTUS = (4096, 1024)

IPERF, QPERF, QPERF_LATENCY = "TCP: iperf3 -l 1M", "TCP: qperf tcp_bw -m 1M", "TCP: qperf tcp_lat"
TCP = (IPERF, QPERF)  # the better of them
UCX_TRANSPORTS = {"UCX shm": "posix,sysv,cma,self", "UCX tcp": "tcp,self"}
HAND_OVER = "floor: a cache line handed over"
MEMCPY = "floor: memcpy 64 KiB"


def write(place, bytes_, path_mtu):
    return f"{place}: ib_write_bw {SIZES[bytes_]}, path MTU {path_mtu}"


def rate(place):
    return f"{place}: ib_write_bw 8 B"


def send_rate(place, service):
    return f"{place}: ib_send_bw -c {service} 8 B"


def old_rate(place):
    return f"{rate(place)}, ibv_post_send"


def latency(place, program):
    return f"{place}: {program} 8 B"


def ucx_bandwidth(kind, bytes_):
    return f"{kind}: tag_bw {SIZES[bytes_]}"


def ucx_rate(kind):
    return f"{kind}: tag_bw 8 B"


def ucx_latency(kind):
    return f"{kind}: tag_lat 8 B"


def core(name):
    return f"core: {name}, a packet"


@dataclasses.dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    beside: tuple = ()  # names of what it is compared with; the better one counts


@dataclasses.dataclass
class Case:
    metrics: list
    measure: Callable  # gives one number for each metric
    failures: int = 0


def places():
    """How server and client are started over each datapath: options of `uroce run`."""
    memif = f"dpdk:net_memif,socket=uroce-compare-{os.getpid()}"
    both = {
        "shm": ["--netdev", "lo", "--uplink", "none"],
        "udp": ["--netdev", "lo", "--uplink", "udp", "--local", "off"],
        "af_packet": ["--netdev", "lo", "--uplink", "dpdk:net_af_packet", "--local", "off"],
    }
    return {place: (options, options) for place, options in both.items()} | {
        "memif": tuple(["--uplink", f"{memif},role={role}", "--address", f"10.99.0.{end}/24",
                        "--local", "off"] for end, role in ((1, "server"), (2, "client")))}


# So many round trips take about a second.
LATENCY_ITERATIONS = {
    ("shm", "ib_send_lat"): 500_000, ("shm", "ib_write_lat"): 12_000,
    ("udp", "ib_send_lat"): 25_000, ("udp", "ib_write_lat"): 10_000,
    ("af_packet", "ib_send_lat"): 25_000, ("af_packet", "ib_write_lat"): 10_000,
    ("memif", "ib_send_lat"): 100_000, ("memif", "ib_write_lat"): 10_000,
}


def perftest_cases(build, seconds, place, sides):
    is_shm = place == "shm"
    for bytes_ in SIZES:
        beside = (ucx_bandwidth("UCX shm", bytes_),) if is_shm else TCP
        for path_mtu in PATH_MTUS:
            yield Case([Metric(write(place, bytes_, path_mtu), GB, beside)],
                       lambda b=bytes_, m=path_mtu: measure.perftest_rate(
                           build, sides, "ib_write_bw", b, m, seconds)[:1])
    yield Case([Metric(rate(place), RATE, (ucx_rate("UCX shm" if is_shm else "UCX tcp"),))],
               lambda: measure.perftest_rate(build, sides, "ib_write_bw", 8, 4096, seconds)[1:])
    yield Case([Metric(old_rate(place), RATE, (rate(place),))],
               lambda: measure.perftest_rate(build, sides, "ib_write_bw", 8, 4096, seconds,
                                             "--use_old_post_send")[1:])
    for service, beside in (("RC", ()), ("UD", (send_rate(place, "RC"),))):
        yield Case([Metric(send_rate(place, service), RATE, beside)],
                   lambda s=service: measure.perftest_rate(build, sides, "ib_send_bw", 8, 4096,
                                                           seconds, "-c", s)[1:])
    beside = ucx_latency("UCX shm") if is_shm else QPERF_LATENCY
    for program in ("ib_send_lat", "ib_write_lat"):
        iterations = LATENCY_ITERATIONS[place, program] * seconds
        yield Case([Metric(latency(place, program), MICROSECONDS, (beside,))],
                   lambda p=program, i=iterations: (measure.perftest_latency(build, sides, p, i),))


def tcp_cases(seconds):
    yield Case([Metric(IPERF, GB)], lambda: (measure.iperf(seconds),))
    yield Case([Metric(QPERF, GB)], lambda: (measure.qperf("tcp_bw", "1M", seconds),))
    yield Case([Metric(QPERF_LATENCY, MICROSECONDS)],
               lambda: (measure.qperf("tcp_lat", "8", seconds),))


# So many messages of 64 KiB, of 1 MiB, of 8 B, and round trips take about a second.
UCX_ITERATIONS = {"UCX shm": (150_000, 12_000, 20_000_000, 4_000_000),
                  "UCX tcp": (40_000, 2_500, 1_000_000, 100_000)}


def ucx_cases(seconds, kind):
    transports = UCX_TRANSPORTS[kind]
    *sized, small, trips = (count * seconds for count in UCX_ITERATIONS[kind])
    for bytes_, iterations in zip(SIZES, sized):
        yield Case([Metric(ucx_bandwidth(kind, bytes_), GB)],
                   lambda b=bytes_, i=iterations: measure.ucx_rate(transports, b, i)[:1])
    yield Case([Metric(ucx_rate(kind), RATE)], lambda: measure.ucx_rate(transports, 8, small)[1:])
    yield Case([Metric(ucx_latency(kind), MICROSECONDS)],
               lambda: (measure.ucx_latency(transports, trips),))


def fabric_cases(seconds):
    for bytes_, iterations in zip(SIZES, (80_000, 6_000)):
        yield Case([Metric(f"libfabric shm: fi_pingpong {SIZES[bytes_]}", GB)],
                   lambda b=bytes_, i=iterations * seconds: measure.fabric("shm", b, i)[:1])
    yield Case([Metric("libfabric shm: fi_pingpong 8 B", MICROSECONDS)],
               lambda: measure.fabric("shm", 8, 500_000 * seconds)[1:])


FLOORS = {"cache_line_hand_over": (HAND_OVER, NANOSECONDS),
          "memcpy_64KiB": (MEMCPY, GB),
          "memcpy_1MiB": ("floor: memcpy 1 MiB", GB)}
CORE = {"write_4096": "WRITE of 4 KiB", "send_4096": "SEND of 4 KiB", "write_8": "WRITE of 8 B",
        "write_8_alone": "one WRITE of 8 B at a time",
        "write_65536/run:1": "WRITE of 64 KiB, frames of 1",
        "write_65536/run:16": "WRITE of 64 KiB, frames of 16",
        "copy_alone/bytes:65536": "only the copy, 64 KiB in turn",
        "copy_alone/bytes:262144": "only the copy, 256 KiB in turn"}


def own_cases(build, seconds):
    def chosen(measured, names):
        return tuple(measured[name] for name in names)

    yield Case([Metric(*metric) for metric in FLOORS.values()],
               lambda: chosen(measure.floors(build), FLOORS))
    yield Case([Metric(core(text), NANOSECONDS) for text in CORE.values()],
               lambda: chosen(measure.core(build, seconds), CORE))


def all_cases(build, seconds):
    cases = []
    for place, sides in places().items():
        cases += perftest_cases(build, seconds, place, sides)
    for kind in UCX_TRANSPORTS:
        cases += ucx_cases(seconds, kind)
    return [*cases, *fabric_cases(seconds), *tcp_cases(seconds), *own_cases(build, seconds)]
