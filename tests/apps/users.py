#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""An ordinary user: no capabilities, no home, no runtime directory. Needs root, to become one."""
import os
import shutil
import tempfile

import checks
from environment import skip
from pairs import Place, run_pair

NOBODY = 65534
PAIRS = [
    ["ibv_rc_pingpong", "-g", "0", "-c"],
    ["ibv_rc_pingpong", "-g", "1", "-c", "-e", "-s", "1048577", "-n", "20"],
    ["ib_write_bw", "-x", "0", "-F", "-n", "50"],
    ["ib_read_lat", "-x", "0", "-F", "-n", "50"],
    ["ib_send_bw", "-x", "1", "-F", "-n", "50", "-q", "16", "-e"],
    ["ib_atomic_bw", "-x", "0", "-F", "-n", "50"],
]


def as_nobody(temporary="/tmp"):
    """What to put before a command."""
    return ["env", "-u", "HOME", "-u", "XDG_RUNTIME_DIR", "-u", "XDG_CONFIG_HOME",
            f"TMPDIR={temporary}", "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY),
            "--clear-groups", "--"]


def check_pairs_of_an_ordinary_user(place, _):
    temporary = tempfile.mkdtemp(prefix="uroce-nobody-")
    os.chmod(temporary, 0o1777)
    user = as_nobody(temporary)
    ordinary = Place(place.name, place.uroce, place.server, place.client, place.address,
                     [*place.server_prefix, *user], [*place.client_prefix, *user])
    try:
        for command in PAIRS:
            run_pair(ordinary, command)
    finally:
        shutil.rmtree(temporary)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("needs root to become an ordinary user")
    checks.main(__doc__, [check_pairs_of_an_ordinary_user])
