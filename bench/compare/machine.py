# SPDX-License-Identifier: BSD-2-Clause
"""What one must know of the machine to read the numbers."""
import datetime
import os
import pathlib
import platform
import subprocess

import measure

PACKAGES = ("perftest", "ucx-utils", "libfabric-bin", "iperf3", "qperf")


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def load():
    return os.getloadavg()[0]


def versions():
    try:
        out = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *PACKAGES],
                             capture_output=True, text=True, check=False).stdout
    except OSError:
        return "unknown"
    return ", ".join(out.splitlines())


def commit(root):
    out = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty"],
                         capture_output=True, text=True, check=False)
    return out.stdout.strip() or "unknown"


def facts(root, rounds, seconds):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(root),
        "processor": f"{processor()}, {os.cpu_count()} CPUs",
        "kernel": platform.release(),
        "packages": versions(),
        "rounds": f"{rounds} of {seconds} s each; {measure.cpus()}",
        "load before": f"{load():.2f}",
    }
