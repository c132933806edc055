# SPDX-License-Identifier: BSD-2-Clause
"""What every script of checks shares: its arguments, the place, one line for each check."""
import argparse
import os
import shutil
import subprocess
import sys
import time

import places
from environment import apart_from_the_user, skip
from pairs import Refused
from programs import Failure


class Missing(Exception):
    """What the check needs is not on this machine."""


def needs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(f"{program} is missing: scripts/install-packages.sh test")


def run_checks(checks, options, *arguments):
    """`checks` are functions named check_x; True when none failed."""
    failures = 0
    for check in checks:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        if options.only not in name:
            continue
        began = time.monotonic()
        try:
            detail = check(*arguments) or ""
            outcome = "passed"
        except Missing as missing:
            outcome, detail = "skipped", str(missing)
        except (Failure, Refused, OSError, subprocess.SubprocessError) as failure:
            outcome, detail = "FAILED", f"\n{failure}"
            failures += 1
        print(f"{outcome:8} {time.monotonic() - began:6.2f} s  {name}  {detail}", flush=True)
    return failures == 0


def main(description, checks, tool="rc_tool"):
    """Runs each check(place, path of the tool) in the place that was chosen."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--uroce", default="build/release/uroce", type=os.path.abspath)
    parser.add_argument("--tool", default=f"build/release/tests/apps/{tool}", type=os.path.abspath)
    parser.add_argument("--only", default="", help="checks whose name contains this")
    parser.add_argument("place", nargs="?", default="one-device-shm")
    options = parser.parse_args()
    apart_from_the_user()
    if options.place in places.NEED_ROOT and os.geteuid() != 0:
        skip(f"{options.place}: needs root")
    with places.make(options.place, options.uroce) as place:
        sys.exit(0 if run_checks(checks, options, place, options.tool) else 1)
