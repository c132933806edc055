# SPDX-License-Identifier: BSD-2-Clause
"""The places where programs are tried: one device, two devices of a host, two hosts joined by veth.

A "host" is a network namespace held by a process of ours whose end is the namespace's end, so that
nothing is left behind however this script ends. Those places need root; the others do not.
"""
import contextlib
import json
import os
import subprocess

from pairs import Place
from programs import Program

VETH_MTU = "9000"
UPLINKS = {
    "shm": ["--uplink", "none"],
    "udp": ["--uplink", "udp", "--local", "off"],
    "af_packet": ["--uplink", "dpdk:net_af_packet,iface={interface}", "--local", "off"],
}


def uplink(datapath, interface):
    return ["--netdev", interface, *(word.format(interface=interface) for word in UPLINKS[datapath])]


class Host:
    """A network namespace; `inside` is what to put before a command that shall run in it."""

    def __init__(self):
        self.holder = Program(["unshare", "--net", "--mount", "sh", "-c",
                               "mount -t sysfs sysfs /sys && echo ready && exec cat"],
                              stdin=subprocess.PIPE)
        self.holder.wait_for_text("ready")
        pid = str(self.holder.pid)
        self.inside = ["nsenter", "--target", pid, "--net", "--mount", "--"]
        self.ip("link", "set", "lo", "up")

    def ip(self, *arguments):
        return subprocess.run([*self.inside, "ip", *arguments], check=True, text=True,
                              capture_output=True).stdout

    def address(self, interface, *addresses):
        for address in addresses:
            flags = ["nodad"] if ":" in address else []
            self.ip("addr", "add", address, "dev", interface, *flags)
        self.ip("link", "set", interface, "up")

    def received_bytes(self, interface):
        (link,) = json.loads(self.ip("-json", "-stats", "link", "show", interface))
        return link["stats64"]["rx"]["bytes"]

    def close(self):
        self.holder.kill()
        self.holder.process.stdin.close()


@contextlib.contextmanager
def hosts(count):
    made = []
    try:
        for _ in range(count):
            made.append(Host())
        yield made
    finally:
        for host in made:
            host.close()


@contextlib.contextmanager
def loopback():
    """What to put before a command for a loopback of its own, apart from whatever else uses port
    4791 on this host; without root, the host's."""
    if os.geteuid() != 0:
        yield []
        return
    with hosts(1) as (host,):
        yield host.inside


@contextlib.contextmanager
def one_device(uroce, datapath):
    options = uplink(datapath, "lo")
    with loopback() as inside:
        yield Place(f"one-device-{datapath}", uroce, options, options, "127.0.0.1", inside, inside)


@contextlib.contextmanager
def one_interface(uroce, datapath):
    """One device, of an interface that is not the loopback, which some libraries leave out."""
    with hosts(1) as (host,):
        host.ip("link", "add", "d0", "mtu", VETH_MTU, "type", "veth", "peer", "name", "d1",
                "mtu", VETH_MTU)
        host.ip("link", "set", "d1", "up")
        host.address("d0", "10.78.0.1/24", "fd78::1/64")
        options = uplink(datapath, "d0")
        yield Place(f"one-interface-{datapath}", uroce, options, options, "10.78.0.1", host.inside,
                    host.inside)


@contextlib.contextmanager
def two_devices(uroce, datapath):
    """Both devices are there for both programs, which choose with -d."""
    with hosts(1) as (host,):
        host.ip("link", "add", "d0", "mtu", VETH_MTU, "type", "veth",
                "peer", "name", "d1", "mtu", VETH_MTU)
        for number in (0, 1):
            host.address(f"d{number}", f"10.78.{number}.1/24", f"fd78:{number}::1/64")
        options = uplink(datapath, "d0,d1")
        yield Place(f"two-devices-{datapath}", uroce, options, options, "127.0.0.1", host.inside,
                    host.inside, ["-d", "uroce0"], ["-d", "uroce1"])


@contextlib.contextmanager
def veth(uroce, datapath):
    """Two hosts: 10.77.0.1 and fd77::1 on v0 (the server's), 10.77.0.2 and fd77::2 on v1."""
    with hosts(2) as both:
        both[0].ip("link", "add", "v0", "mtu", VETH_MTU, "type", "veth", "peer", "name", "v1",
                   "mtu", VETH_MTU, "netns", str(both[1].holder.pid))
        for number, host in enumerate(both):
            host.address(f"v{number}", f"10.77.0.{number + 1}/24", f"fd77::{number + 1}/64")
        place = Place(f"veth-{datapath}", uroce, uplink(datapath, "v0"), uplink(datapath, "v1"),
                      "10.77.0.1", both[0].inside, both[1].inside)
        place.received_bytes = lambda: both[0].received_bytes("v0")
        yield place


@contextlib.contextmanager
def memif(uroce, _):
    """Two processes joined by shared memory of DPDK's, each port with addresses of its own."""
    socket = f"@uroce-apps-{os.getpid()}"

    def options(role, number):
        return ["--uplink", f"dpdk:net_memif,role={role},socket-abstract=yes,socket={socket}",
                "--address", f"10.79.0.{number}/24,fd79::{number}/64", "--local", "off"]

    yield Place("memif", uroce, options("server", 1), options("client", 2))


@contextlib.contextmanager
def one_side_without_local(uroce, _):
    """The server could use shared memory and the client may not: both take the sockets."""
    with loopback() as inside:
        yield Place("one-device-mixed", uroce, ["--netdev", "lo"],
                    ["--netdev", "lo", "--local", "off"], "127.0.0.1", inside, inside)


# name: (how to make it, datapath)
PLACES = {
    "one-device-shm": (one_device, "shm"),
    "one-device-udp": (one_device, "udp"),
    "one-device-af_packet": (one_device, "af_packet"),
    "one-device-mixed": (one_side_without_local, "mixed"),
    "one-interface-shm": (one_interface, "shm"),
    "one-interface-udp": (one_interface, "udp"),
    "two-devices-shm": (two_devices, "shm"),
    "two-devices-udp": (two_devices, "udp"),
    "veth-udp": (veth, "udp"),
    "veth-af_packet": (veth, "af_packet"),
    "memif": (memif, "memif"),
}
def loses(name):
    """Whether packets that nobody takes in time are lost there, as on a network."""
    return "shm" not in name and name != "memif"


NEED_ROOT = {"one-device-af_packet", "one-interface-shm", "one-interface-udp", "two-devices-shm",
             "two-devices-udp", "veth-udp", "veth-af_packet"}


def make(name, uroce):
    function, datapath = PLACES[name]
    return function(uroce, datapath)
