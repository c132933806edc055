# SPDX-License-Identifier: BSD-2-Clause
"""One measurement of each kind: which programs to run, and the number in what they print.

Bandwidth in GB/s (10^9 bytes), rates in million messages a second, times in microseconds.
"""
import json
import re

from programs import CLIENT_CPU, SERVER_CPU, Failure, free_port, need, run_alone, run_pair

ADDRESS = "127.0.0.1"


def numbers_after(text, heading):
    """The numbers of the first line that has some, behind the line that holds `heading`."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if heading in line:
            for row in lines[at + 1:]:
                found = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])", row)
                if found:
                    return [float(number) for number in found]
    raise Failure(f"no line of numbers in:\n{text}")


# --- perftest over uroce --------------------------------------------------------------------------


def perftest(build, server_options, client_options, program, arguments):
    need(program)
    port = free_port()
    command = [program, "-x", "0", "-F", "-p", str(port), *arguments]
    uroce = [str(build / "uroce"), "run"]
    return run_pair([*uroce, *server_options, "--", *command],
                    [*uroce, *client_options, "--", *command, ADDRESS], port)


def perftest_rate(build, sides, program, bytes_, path_mtu, seconds, *options):
    """(GB/s, million messages a second)."""
    text = perftest(build, *sides, program, ["-s", str(bytes_), "-m", str(path_mtu), "-D",
                                             str(seconds), "--report_gbits", *options])
    _, _, _, gigabits, messages, *_ = numbers_after(text, "#bytes")
    return gigabits / 8, messages


def perftest_latency(build, sides, program, iterations):
    """Half a round trip of 8 bytes: the average, which is what a program waits in all."""
    text = perftest(build, *sides, program, ["-s", "8", "-n", str(iterations)])
    _, _, _, _, _, average, *_ = numbers_after(text, "#bytes")
    return average


# --- UCX and libfabric ----------------------------------------------------------------------------


def ucx(transports, arguments):
    program = need("ucx_perftest")
    port = str(free_port())
    text = run_pair([program, "-p", port], [program, ADDRESS, "-p", port, "-f", *arguments],
                    int(port), {"UCX_TLS": transports, "UCX_WARN_UNUSED_ENV_VARS": "n"})
    return [float(number) for number in text.splitlines()[-1].split()]


def ucx_rate(transports, bytes_, iterations):
    *_, bandwidth, _, rate = ucx(transports, ["-t", "tag_bw", "-s", str(bytes_), "-n",
                                              str(iterations), "-w", str(iterations // 10)])
    return bandwidth * 2 ** 20 / 1e9, rate / 1e6


def ucx_latency(transports, iterations):
    _, _, _, overall, *_ = ucx(transports, ["-t", "tag_lat", "-s", "8", "-n", str(iterations),
                                            "-w", str(iterations // 10)])
    return overall


def fabric(provider, bytes_, iterations):
    """(GB/s one way at a time, microseconds of half a round trip)."""
    program = need("fi_pingpong")
    port = free_port()
    common = ["-p", provider, "-e", "rdm", "-I", str(iterations), "-S", str(bytes_)]
    text = run_pair([program, *common, "-B", str(port)],
                    [program, *common, "-P", str(port), ADDRESS], port)
    *_, megabytes, microseconds, _ = numbers_after(text, "usec/xfer")
    return megabytes / 1e3, microseconds


# --- TCP ------------------------------------------------------------------------------------------


def iperf(seconds):
    program = need("iperf3")
    port = free_port()
    text = run_pair([program, "-s", "-1", "-p", str(port)],
                    [program, "-c", ADDRESS, "-p", str(port), "-l", "1M", "-t", str(seconds), "-J"],
                    port)
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e9


def qperf(test, bytes_, seconds):
    """GB/s of tcp_bw, microseconds of tcp_lat."""
    program = need("qperf")
    port = free_port()
    text = run_pair([program, "-lp", str(port)],
                    [program, ADDRESS, "-lp", str(port), "-m", bytes_, "-t", str(seconds), "-uu",
                     test], port)
    found = re.search(r"=\s*([\d.,]+) (?:bytes/sec|ns)", text)
    if not found:
        raise Failure(text)
    return float(found[1].replace(",", "")) * (1e-9 if test == "tcp_bw" else 1e-3)


# --- our own programs -----------------------------------------------------------------------------


def floors(build):
    """What shm_bench prints as "name value unit", by name."""
    text = run_alone([str(build / "bench" / "shm_bench"), "floors"])
    rows = (line.split() for line in text.splitlines())
    return {row[0]: float(row[1]) for row in rows if len(row) == 3}


def core(build, seconds):
    """Nanoseconds a packet of core_bench, by name."""
    text = run_alone([str(build / "bench" / "core_bench"), "--benchmark_format=json",
                      f"--benchmark_min_time={seconds / 4}"], CLIENT_CPU)
    rows = json.loads(text[text.index("{"):])["benchmarks"]
    return {row["name"]: row["per_packet"] * 1e9 for row in rows}


def cpus():
    return f"server on CPU {SERVER_CPU}, client on CPU {CLIENT_CPU}"
