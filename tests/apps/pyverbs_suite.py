#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs' own suite, as Debian ships it with rdma-core, unmodified: no test of it fails, and each
that is skipped stands in the table of docs/CONFORMANCE.md with its reason."""
import argparse
import contextlib
import fnmatch
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import places
from environment import apart_from_the_user, skip
from programs import Failure

PYTHON = "/usr/bin/python3"  # the one that python3-pyverbs is for
SUITE = pathlib.Path("/usr/share/doc/rdma-core/tests")
CONFORMANCE = pathlib.Path(__file__).parents[2] / "docs/CONFORMANCE.md"
HEADING = "## pyverbs' suite"
# Two processes, whose parent has the devices open too: a port of DPDK is one process's.
BETWEEN_PROCESSES = ["test_rdmacm"]
# A name, its description, and whatever the test printed before the result.
RESULT = re.compile(r"^test_\w+ \(tests\.([\w.]+)\)(?:\n(?!test_)[^\n]*?){0,8}?"
                    r" \.\.\. (?:(?!test_)[^\n]*\n){0,8}?(ok|FAIL|ERROR|skipped.*)$", re.MULTILINE)
HUGE_PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
HUGE_PAGES_WANTED = 64
RUN_SECONDS = 250  # each of three, within what ctest allows to all


def unpack(folder):
    """Debian compresses what is long, which cannot be imported."""
    for file in SUITE.iterdir():
        if file.suffix == ".gz":
            with gzip.open(file) as packed, open(folder / file.stem, "wb") as plain:
                shutil.copyfileobj(packed, plain)
        elif file.is_file():
            shutil.copy(file, folder)


def table():
    """The rows under HEADING: patterns of names, and why they are skipped."""
    section = CONFORMANCE.read_text().split(HEADING)[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    return {pattern: reason for names, reason in rows
            for pattern in re.findall(r"`([^`]+)`", names)}


@contextlib.contextmanager
def huge_pages():
    """Some, where we may ask for them."""
    before = HUGE_PAGES.read_text() if HUGE_PAGES.exists() else None
    if before is None or os.geteuid() != 0 or int(before) >= HUGE_PAGES_WANTED:
        yield
        return
    HUGE_PAGES.write_text(str(HUGE_PAGES_WANTED))
    try:
        yield
    finally:
        HUGE_PAGES.write_text(before)


def run(uroce, folder, inside, names, *uplink):
    chosen = [word for name in names for word in ("-k", f"*.{name}.*")]
    try:
        done = subprocess.run([*inside, uroce, "run", "--netdev", "lo", "--uplink", *uplink, "--",
                               PYTHON, f"{folder}/run_tests.py", "--dev", "uroce0", "--port", "1",
                               "--gid", "0", "-v", *chosen], check=False, text=True,
                              timeout=RUN_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
        raise Failure(f"the suite did not end within {RUN_SECONDS} s:\n{text[-20_000:]}") from late
    if not re.search(r"^Ran [1-9]\d* tests? in ", done.stdout, re.M):
        raise Failure(f"the suite did not come to its end ({done.returncode}):\n{done.stdout[-20_000:]}")
    return done.stdout


def check(text, patterns):
    results = RESULT.findall(text)
    wrong = [f"{name}: {result}" for name, result in results if result in ("FAIL", "ERROR")]
    skipped = {name: result for name, result in results if result.startswith("skipped")}
    unlisted = [f"{name}: {reason}, and not in {CONFORMANCE.name}" for name, reason in
                skipped.items() if not any(fnmatch.fnmatch(name, p) for p in patterns)]
    stale = [f"{pattern} is in {CONFORMANCE.name}, and nothing like it was skipped"
             for pattern, reason in patterns.items()
             if not reason.startswith("where ") and not fnmatch.filter(skipped, pattern)]
    passed = sum(result == "ok" for _, result in results)
    print(f"{passed} passed, {len(skipped)} skipped, {len(wrong)} failed", flush=True)
    if wrong or unlisted or stale or passed == 0:
        raise Failure("\n".join([*wrong, *unlisted, *stale, text[-20_000:] if wrong else ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uroce", default="build/release/uroce", type=os.path.abspath)
    parser.add_argument("--dpdk", action="store_true", help="it was built with DPDK")
    options = parser.parse_args()
    if not (SUITE / "run_tests.py").exists():
        skip(f"{SUITE} is not there (package rdma-core)")
    if subprocess.run([PYTHON, "-c", "import pyverbs"], check=False).returncode != 0:
        skip("no pyverbs (package python3-pyverbs)")
    apart_from_the_user()
    patterns = table()
    names = sorted(file.name.split(".")[0] for file in SUITE.glob("test_*"))
    in_one_process = [name for name in names if name not in BETWEEN_PROCESSES]
    # Raw packets need such a port, and all of its rights.
    uplink = "dpdk:net_af_packet" if options.dpdk and os.geteuid() == 0 else "none"
    with tempfile.TemporaryDirectory() as folder, huge_pages(), places.loopback() as inside:
        unpack(pathlib.Path(folder))
        try:
            text = run(options.uroce, folder, inside, in_one_process, uplink)
            for other in (["none"], ["udp", "--local", "off"]):
                text += run(options.uroce, folder, inside, BETWEEN_PROCESSES, *other)
            check(text, patterns)
        except Failure as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
