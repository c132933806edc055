#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What programs read of a device beside libibverbs, to find out where it is: the same in a program
under `uroce run`, in what that forks and in what it executes, in shells and in Python."""
import json
import re
import sys

import checks
from programs import Failure

DEVICE = "/sys/class/infiniband/uroce0"
PORT = f"{DEVICE}/ports/1"
FILES = {
    f"{DEVICE}/node_type": r"1: CA",
    f"{DEVICE}/node_guid": r"([0-9a-f]{4}:){3}[0-9a-f]{4}",
    f"{DEVICE}/device/numa_node": r"-1",
    f"{DEVICE}/device/local_cpus": r"[0-9a-f,]+",
    f"{DEVICE}/device/local_cpulist": r"[0-9,-]+",
    f"{DEVICE}/device/net/NETDEV/ifindex": r"[1-9][0-9]*",
    f"{DEVICE}/device/net/NETDEV/type": r"1|772",
    f"{PORT}/state": r"4: ACTIVE",
    f"{PORT}/phys_state": r"5: LinkUp",
    f"{PORT}/rate": r"[0-9.]+ Gb/sec \(.*\)",
    f"{PORT}/link_layer": r"Ethernet",
    f"{PORT}/gids/0": r"([0-9a-f]{4}:){7}[0-9a-f]{4}",
    f"{PORT}/gid_attrs/types/0": r"RoCE v2",
    f"{PORT}/gid_attrs/ndevs/0": r"NETDEV",
    f"{PORT}/pkeys/0": r"0xffff",
    "/sys/class/infiniband_verbs/abi_version": r"6",
    "/sys/class/infiniband_verbs/uverbs0/ibdev": r"uroce0",
    "/sys/class/misc/rdma_cm/abi_version": r"4",
}
# What has to be among the entries: the host may have devices of its own.
FOLDERS = {"/sys/class/infiniband": ["uroce0"], f"{DEVICE}/device/net": ["NETDEV"],
           f"{DEVICE}/ports": ["1"], "/dev/infiniband": ["rdma_cm", "uverbs0"]}

# Reads in a forked child, then in a shell that a child becomes, and writes down both.
FORKS_AND_EXECUTES = """
import json, os, subprocess, sys
files, folders = json.loads(sys.argv[1])
def look():
    return [{f: open(f).read() for f in files}, {f: sorted(os.listdir(f)) for f in folders}]
reading, writing = os.pipe()
if os.fork() == 0:
    with os.fdopen(writing, "w") as pipe:
        json.dump(look(), pipe)
    os._exit(0)
os.close(writing)
forked = json.load(os.fdopen(reading))
os.wait()
def shell(*words):
    return subprocess.run(["sh", "-c", 'exec "$@"', "sh", *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
executed = [{f: shell("cat", f) for f in files}, {f: shell("ls", f).split() for f in folders}]
print(json.dumps([look(), forked, executed]))
"""


def netdev(place):
    return place.server[place.server.index("--netdev") + 1]


def named(place, text):
    return text.replace("NETDEV", netdev(place))


def check_files_and_folders(place, _):
    files = {named(place, name): named(place, value) for name, value in FILES.items()}
    folders = {name: [named(place, entry) for entry in entries]
               for name, entries in FOLDERS.items()}
    text = place.output([sys.executable, "-c", FORKS_AND_EXECUTES,
                         json.dumps([list(files), list(folders)])])
    for who, (contents, entries) in zip(("a program", "its child", "what it executes"),
                                        json.loads(text)):
        for name, pattern in files.items():
            if not re.fullmatch(f"(?:{pattern})\n", contents[name]):
                raise Failure(f"{who} reads {contents[name]!r} in {name}, not {pattern}")
        for name, expected in folders.items():
            if not set(expected) <= set(entries[name]):
                raise Failure(f"{who} sees {entries[name]} in {name}, not {expected}")


def check_nodes(place, _):
    """Character devices that everybody may open, however one looks."""
    found = place.output(["find", "/dev/infiniband", "-type", "c", "-perm", "666"])
    if not {"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"} <= set(found.split()):
        raise Failure(f"found as character devices: {found}")
    script = "import os; print([e.is_file() for e in os.scandir('/dev/infiniband')])"
    if "True" in place.output([sys.executable, "-c", script]):
        raise Failure("Python takes a node for a plain file")


if __name__ == "__main__":
    checks.main(__doc__, [check_files_and_folders, check_nodes])
