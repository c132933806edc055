#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""perftest's raw_ethernet_bw, raw_ethernet_lat and raw_ethernet_fs_rate, unmodified, over ports that
take whole Ethernet frames."""
import re

import checks
from pairs import collect
from programs import Failure, Program

SERVER_MAC, CLIENT_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
SERVER = ["--server", "-B", SERVER_MAC, "-E", CLIENT_MAC, "-F"]
CLIENT = ["--client", "-B", CLIENT_MAC, "-E", SERVER_MAC, "-F"]
# Fewer than the receives that are posted: what finds none is lost, and perftest waits for it.
FEW = "400"
PORTS = ["-K", "2000", "-k", "1000"]
IPV4 = ["-J", "10.0.0.2", "-j", "10.0.0.1", *PORTS]
IPV6 = ["--raw_ipv6", "-J", "fd00::2", "-j", "fd00::1", *PORTS]


def run(place, program, server=(), client=()):
    """Both must print their table. They do not talk but by their frames, so the client begins when
    the server says that it is ready; it says so at once when its lines are not kept back."""
    program = ["stdbuf", "-oL", *program]
    with Program(place.server_command([*program, *SERVER, *server])) as serving:
        serving.wait_for_text("#iterations")
        with Program(place.client_command([*program, *CLIENT, *client])) as asking:
            collect([serving, asking])
    for text in (serving.text(), asking.text()):
        if not re.search(r"^ \d+ +\d+ +[\d.]+ ", text, re.MULTILINE):
            raise Failure(f"{program}: no table:\n{text}")


def check_bandwidth(place, _):
    for size in ("64", "1000", "1500"):
        run(place, ["raw_ethernet_bw", "-n", FEW, "-s", size])


def check_bandwidth_both_ways(place, _):
    run(place, ["raw_ethernet_bw", "-b", "-n", FEW, "-s", "1000"])


def check_bandwidth_through_rules_with_ports(place, _):
    for addresses in (IPV4, IPV6):
        for protocol in ([], ["--tcp"]):
            run(place, ["raw_ethernet_bw", "-n", FEW, "-s", "1000", *addresses, *protocol])


# Drivers put tags aside, and they are put back.
def check_bandwidth_of_tagged_frames(place, _):
    run(place, ["raw_ethernet_bw", "-n", FEW, "-s", "1000", "--vlan_en", *IPV4])


def check_bandwidth_by_default_rules(place, _):
    for kind in ("--promiscuous", "--sniffer"):
        run(place, ["raw_ethernet_bw", "-n", FEW, "-s", "1000"], [kind])


def check_latency(place, _):
    run(place, ["raw_ethernet_lat", "-n", "1000", "-s", "64"])


def check_rate_of_flows(place, _):
    text = place.output(["raw_ethernet_fs_rate", *SERVER, *IPV4])
    if "flow" not in text:
        raise Failure(text)


if __name__ == "__main__":
    checks.main(__doc__, [check_bandwidth, check_bandwidth_both_ways,
                          check_bandwidth_through_rules_with_ports,
                          check_bandwidth_of_tagged_frames,
                          check_bandwidth_by_default_rules, check_latency, check_rate_of_flows])
