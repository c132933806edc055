# SPDX-License-Identifier: BSD-2-Clause
"""ibv_*_pingpong of libibverbs' examples: GIDs, path MTUs, sizes, events and checked payloads."""
import re

FACTORS = {
    "service": ["rc", "uc", "ud", "srq", "xsrq"],
    "gid": [],  # depends on the place
    "-m": ["", "256", "512", "1024", "2048", "4096"],
    "-s": ["1", "3", "4095", "4096", "4097", "65536", "1048577", "16777216"],
    "-e": [False, True],
    "-c": [True, False],
}


def is_possible(case, largest_mtu, loses):
    """A datagram is one packet, and its program has no -m; where packets may be lost, an unreliable
    message must fit what a receiver holds (`loses`)."""
    size = int(case.get("-s", 1))
    if case.get("service") == "xsrq" and case.get("-c"):
        return False  # there -c has another meaning, and nothing is checked
    if case.get("service") == "ud":
        return not case.get("-m") and size <= int(largest_mtu)
    return case.get("service") != "uc" or not loses or size <= 65536


def command(case, iterations):
    words = [f"ibv_{case['service']}_pingpong", "-g", case["gid"], "-s", case["-s"], "-n", str(iterations)]
    words += ["-m", case["-m"]] if case["-m"] else []
    return words + [flag for flag in ("-e", "-c") if case[flag]]


def iterations(case, at_most):
    """Fewer of the long messages: some 64 MB in each direction."""
    return max(3, min(at_most, 64_000_000 // int(case["-s"])))


def gid_indices(devinfo):
    """Those of the first port of `ibv_devinfo -v` that are not empty."""
    return re.findall(r"GID\[ *(\d+)\]:\s+(?!0000:0000:0000:0000:0000:0000:0000:0000)\S", devinfo)


def path_mtus(devinfo):
    active = int(re.search(r"active_mtu:\s+(\d+)", devinfo)[1])
    return ["", *(mtu for mtu in FACTORS["-m"] if mtu and int(mtu) <= active)]


def is_expected_output(case, text, count):
    if case["service"] == "xsrq":
        return "success" in text
    return f"{2 * int(case['-s']) * count} bytes in" in text and f"{count} iters in" in text
