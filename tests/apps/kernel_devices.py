#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""On a host whose kernel has RDMA devices too, programs see those next to ours. The host is made up:
a mount namespace in which sysfs and /dev show an rxe0, as far as listing looks at it. Needs root."""
import os
import re

import checks
from environment import skip
from pairs import Place, run_pair
from programs import Failure

# Devices as sysfs has them; 231 is the major number of uverbs. /sys/class itself cannot be added to.
SCRIPT = """
set -e
mount -t tmpfs none /sys/class
mkdir -p /sys/class/infiniband/rxe0/ports/1 /sys/class/infiniband_verbs/uverbs0
cd /sys/class/infiniband/rxe0
echo '1: CA' > node_type
echo 0200:00ff:fe00:0009 > node_guid
cd ../../infiniband_verbs
echo 6 > abi_version
echo rxe0 > uverbs0/ibdev
echo 2 > uverbs0/abi_version
echo 231:192 > uverbs0/dev
mkdir -p "$1"
mount -t tmpfs none "$1"
mkdir "$1/infiniband" "$1/shm"
mknod "$1/infiniband/uverbs0" c 231 192
for node in null zero random urandom; do touch "$1/$node"; mount --bind "/dev/$node" "$1/$node"; done
mount --rbind "$1" /dev
shift
cd /
exec "$@"
"""


def on_such_a_host(place):
    folder = os.path.join(os.environ["XDG_RUNTIME_DIR"], "dev")
    prefix = [*place.server_prefix, "unshare", "--mount", "sh", "-c", SCRIPT, "sh", folder]
    return Place(place.name, place.uroce, place.server, place.client, place.address, prefix, prefix)


def check_are_listed_next_to_ours(place, _):
    text = on_such_a_host(place).output(["ibv_devices"])
    names = re.findall(r"^\s+(\w+)\s+[0-9a-f]{16}$", text, re.MULTILINE)
    if sorted(names) != ["rxe0", "uroce0"]:
        raise Failure(f"expected rxe0 and uroce0:\n{text}")


def check_run_inside_run_lists_each_once(place, _):
    host = on_such_a_host(place)
    text = host.output([place.uroce, "run", *place.server, "--", "ibv_devices"])
    names = re.findall(r"^\s+(\w+)\s+[0-9a-f]{16}$", text, re.MULTILINE)
    if sorted(names) != ["rxe0", "uroce0"]:
        raise Failure(f"expected rxe0 and uroce0:\n{text}")


def check_ours_work_beside_them(place, _):
    run_pair(on_such_a_host(place), ["ib_write_bw", "-d", "uroce0", "-x", "0", "-F", "-n", "50"])


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("needs root to make up such a host")
    checks.main(__doc__, [function for name, function in list(globals().items())
                          if name.startswith("check_")])
