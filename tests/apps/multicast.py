#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified perftest through multicast groups of both families: the server is in the group, and
what the client sends to it arrives."""
import re

import checks
from pairs import run_pair

# As perftest wants them: 239.1.2.3 and ff0e::1234 (its own one does not leave the interface).
IPV4_GROUP = ["-M", "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3"]
IPV6_GROUP = ["-M", "255:14:0:0:0:0:0:0:0:0:0:0:0:0:18:52"]
# Fewer than the receives that are posted: nobody says when he has no more.
FEW = ["ib_send_bw", "-c", "UD", "-g", "-F", "-n", "100", "-s", "64"]


def gid_index(place, is_ipv4):
    """The first of that family; none: the place has no such address."""
    gids = re.findall(r"GID\[ *(\d+)\]:\s+([0-9a-f:.]+)", place.output(["ibv_devinfo", "-v"]))
    return next((index for index, gid in gids if gid.startswith("::ffff:") == is_ipv4), None)


def check_a_group_of_ipv4(place, _):
    run_pair(place, [*FEW, "-x", gid_index(place, True), *IPV4_GROUP])


def check_a_group_of_ipv6(place, _):
    index = gid_index(place, False)
    # Linux has no route for groups of IPv6 on lo.
    if index is not None and place.name != "one-device-udp":
        run_pair(place, [*FEW, "-x", index, *IPV6_GROUP])


if __name__ == "__main__":
    checks.main(__doc__, [check_a_group_of_ipv4, check_a_group_of_ipv6])
