#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""uroce beside Linux's own soft RoCE on the same machines: virtual ones, into which this build of uroce
is copied. Whatever the processor is there, an emulated one without KVM, it is the same for both, so that
their ratio is fair and only that. perftest runs over the loopback of one guest (for rxe what its driver
makes of it, for uroce sockets or shared memory) and between two guests over their interfaces.

Each round measures everything once; the table has the medians. The UDP port is rxe's as long as its
module is loaded, so that it is unloaded for uroce and loaded again. Needs what tests/interop needs."""
import argparse
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "interop"), str(ROOT / "tests" / "apps")]
# pylint: disable=wrong-import-position
import image
from environment import apart_from_the_user, skip
from guest import accelerator, address, guests, skip_without_means
from pairs import Refused
from programs import Failure
from sides import run_pair

HOME = "opt/uroce"
LIBRARIES = ["lib/liburoce-rdmav34.so", "lib/liburoce-kernel.so"]
UPLINKS = {"udp": ["--uplink", "udp", "--local", "off"], "shm": ["--uplink", "none"]}
LOOPBACK, WIRE = "loopback", "two guests"
# Who runs where.
RUNS = {"rxe": [LOOPBACK, WIRE], "udp": [LOOPBACK, WIRE], "shm": [LOOPBACK]}
# name: (options, column of perftest's table, unit)
TESTS = {
    **{f"ib_{kind}_bw": (["-s", "65536", "-m", "4096"], 3, "MiB/s") for kind in ("write", "read", "send")},
    **{f"ib_{kind}_lat": (["-s", "8", "-m", "4096"], 4, "us") for kind in ("write", "send")},
}
# (who, tests, least ratio of bandwidths or most of latencies), over the loopback
BARS = [("udp", "bw", 1.5), ("shm", "bw", 3.0), ("shm", "ib_send_lat", 1.0), ("udp", "ib_send_lat", 3.0)]


class GuestSide:
    """Programs in a guest, over rxe or over uroce."""

    def __init__(self, guest, who):
        self.guest, self.name = guest, who
        self.address = address(guest.number)
        self.prefix = [] if who == "rxe" else [
            "env", "XDG_RUNTIME_DIR=/run/uroce", f"/{HOME}/uroce", "run", "--netdev", "eth0",
            *UPLINKS[who], "--"]

    def start(self, words):
        return self.guest.start([*self.prefix, *words])

    def device(self):
        """Both have the address of IPv4 as their second GID."""
        return ["-d", "rxe0" if self.name == "rxe" else "uroce0", "-x", "1"]


def stripped(path, folder):
    target = pathlib.Path(folder) / os.path.basename(path)
    subprocess.run(["strip", "--strip-unneeded", "-o", target, path], check=True)
    return target


def install(guest, build):
    """uroce, and the libraries it needs that are not there."""
    own = ["uroce", *LIBRARIES]
    needed = sorted({library for name in own for library in image.libraries(build / name)})
    looks = " ".join(needed)
    missing = guest.run(f"for f in {looks}; do [ -e $f ] || echo $f; done").split()
    with tempfile.TemporaryDirectory() as folder:
        archive = f"{folder}/uroce.tar.gz"
        with tarfile.open(archive, "w:gz", dereference=True) as tar:
            for name in own:
                tar.add(stripped(build / name, folder), f"{HOME}/{name}")
            for library in missing:
                tar.add(library, library.lstrip("/"))
        unpack = f"head -c {os.path.getsize(archive)} | busybox tar xz -C /"
        guest.run(f"{unpack} && mkdir -m 700 -p /run/uroce", archive)


def use(guest, who):
    """rxe holds UDP port 4791 while its module is there."""
    has_rxe = "rxe0" in guest.run("rdma link")
    if who == "rxe" and not has_rxe:
        guest.run("busybox insmod /lib/modules/rdma_rxe.ko && rdma link add rxe0 type rxe netdev eth0")
    elif who != "rxe" and has_rxe:
        guest.run("rdma link delete rxe0 && busybox rmmod rdma_rxe")


def measure(server, client, test, options):
    words, column, _ = TESTS[test]
    length = ["-n", str(options.messages * (4 if server.name == "shm" else 1))]
    text = run_pair(server, client, lambda side: [test, *words, *length, "-F", *side.device()])[1]
    rows = re.findall(r"^ *\d+ +\d+ +.*$", text, re.M)
    if not rows:
        raise Failure(f"{test} printed no result:\n{text}")
    return float(rows[-1].split()[column])


def measure_round(booted, samples, options):
    for who, paths in RUNS.items():
        for guest in booted:
            use(guest, who)
        for path in [path for path in paths if options.only in path]:
            server = GuestSide(booted[0], who)
            client = GuestSide(booted[0 if path == LOOPBACK else 1], who)
            for test in TESTS:
                value = measure(server, client, test, options)
                samples.setdefault((path, test, who), []).append(value)
                print(f"  {path}, {who}, {test}: {value:g} {TESTS[test][2]}", flush=True)


def shown(values, rxe):
    if not values:
        return "|"
    ratio = statistics.median(values) / statistics.median(rxe)
    return f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g}) | {ratio:.2f}"


def table(samples):
    yield "| path | test | unit | rxe | uroce, `udp` | to rxe | uroce, `shm` | to rxe |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for path in dict.fromkeys(path for path, _, _ in samples):
        for test, (_, _, unit) in TESTS.items():
            rxe = samples[path, test, "rxe"]
            cells = [shown(samples.get((path, test, who)), rxe) for who in ("udp", "shm")]
            yield f"| {path} | `{test}` | {unit} | {shown(rxe, rxe).split(' |')[0]} | {' | '.join(cells)} |"


def bars(samples):
    def median(who, test):
        return statistics.median(samples[LOOPBACK, test, who])
    for who, tests, bar in BARS:
        for test in TESTS:
            if not test.endswith(tests):
                continue
            ratio = median(who, test) / median("rxe", test)
            is_met = ratio <= bar if test.endswith("lat") else ratio >= bar
            kind = "at most" if test.endswith("lat") else "at least"
            yield f"{'met' if is_met else 'NOT MET'}: {test} over {who}: {ratio:.2f} times rxe's, {kind} {bar}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2000,
                        help="of each measurement, and over shared memory four times as many")
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(),
                        default=ROOT / "build" / "release")
    parser.add_argument("--only", choices=[LOOPBACK, WIRE], default="", help="one of the paths")
    parser.add_argument("--markdown", help="a file for the table")
    options = parser.parse_args()
    interop = options.build / "tests" / "interop"
    options.tool, options.agent = interop / "verbs_peer", interop / "guest_agent"
    options.cache = interop / "image"
    return options


def main():
    options = parse_arguments()
    skip_without_means()
    apart_from_the_user()
    samples = {}
    try:
        with guests(options, 1 if options.only == LOOPBACK else 2) as (_, booted):
            machine = f"{accelerator().partition(',')[0]}, Linux {booted[0].run('uname -r').strip()}"
            for guest in booted:
                install(guest, options.build)
            for number in range(1, options.rounds + 1):
                print(f"round {number} of {options.rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
                measure_round(booted, samples, options)
    except image.NoKernel as reason:
        skip(f"interop: {reason}")
    except (Failure, Refused) as failure:
        sys.exit(f"interop: {failure}")
    lines = [f"QEMU's {machine}, two virtual processors a guest, on {platform.processor() or 'x86-64'}",
             "", *table(samples)]
    print("\n".join([*lines, "", *(bars(samples) if options.only != WIRE else [])]))
    if options.markdown:
        pathlib.Path(options.markdown).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
