#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""uroce installed below a prefix of its own, where the distribution's libibverbs does not look:
`uroce run` works from there, also after the prefix was moved, and `uroce doctor` says how it is."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import checks
from pairs import Place, run_pair
from programs import Failure

WRITE = ["ib_write_bw", "-x", "0", "-F", "-n", "50"]


def run(*command):
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def check_prefix_of_its_own(place, _):
    build = pathlib.Path(place.uroce).parent
    base = pathlib.Path(tempfile.mkdtemp(prefix="uroce-installed-"))
    try:
        for prefix in (base / "prefix", base / "moved"):
            if prefix.name == "moved":
                os.rename(base / "prefix", prefix)
            else:
                status, text = run("cmake", "--install", str(build), "--prefix", str(prefix))
                if status != 0:
                    raise Failure(f"cmake --install ended with {status}:\n{text}")
            try_installed(place, prefix)
    finally:
        shutil.rmtree(base)


def try_installed(place, prefix):
    uroce = str(prefix / "bin" / "uroce")
    installed = Place(place.name, uroce, place.server, place.client, place.address,
                      place.server_prefix, place.client_prefix)
    run_pair(installed, WRITE)
    drivers = installed.output(["sh", "-c", "echo $RDMAV_DRIVERS"])
    if not drivers.startswith(str(prefix)):
        raise Failure(f"RDMAV_DRIVERS names another provider: {drivers}")
    _, text = run(*place.server_prefix, uroce, "doctor", "--netdev", "lo")
    sentence = "libibverbs by itself looks for providers only in"
    if sentence not in " ".join(text.split()):
        raise Failure(f"doctor does not say that {sentence!r}:\n{text}")


if __name__ == "__main__":
    checks.main(__doc__, [check_prefix_of_its_own])
