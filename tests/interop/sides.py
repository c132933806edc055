# SPDX-License-Identifier: BSD-2-Clause
"""The two ends of a test, a program over uroce here and a program over rxe in the guest, and pairs of
programs on them: each end may have the server."""
import collections
import contextlib
import re
import subprocess

from guest import MTU, address
from pairs import Refused, collect
from programs import DEADLINE_SECONDS, Failure, Program, free_port

# What ports have that are not host0's.
PORT, NUMBER = "port0", 9
# Options of `uroce run`, the network's MTU, the number in the device's addresses, and what has to be
# done to the network before, where it needs more than every kernel has.
Uplink = collections.namedtuple("Uplink", "options mtu number prepare", defaults=(MTU, 1, None))
UPLINKS = {
    "udp": Uplink(["--uplink", "udp", "--netdev", "host0"]),
    "af_packet": Uplink(["--uplink", "dpdk:net_af_packet,iface=host0", "--netdev", "host0"]),
    # A packet and what DPDK puts round it have to fit a page.
    "af_xdp": Uplink(["--uplink", f"dpdk:net_af_xdp,iface={PORT}", "--netdev", PORT], 3498, NUMBER,
                     lambda network: network.veth_for_port(PORT, NUMBER)),
    "tap": Uplink(["--uplink", f"dpdk:net_tap,iface={PORT},mac=fixed", "--address",
                   f"{address(NUMBER)}/24,{address(NUMBER, 6)}/64"], 1500, NUMBER,
                  lambda network: network.tap_for_port(PORT)),
}


def prepare(network, uplink):
    if UPLINKS[uplink].prepare is not None:
        UPLINKS[uplink].prepare(network)


class Side:
    """`name`, `device`, its path MTU, its `addresses` and GID indices by IP family, and `address` for
    TCP."""

    def __init__(self, number):
        self.address = address(number)
        self.addresses = {family: address(number, family) for family in (4, 6)}

    def look_at(self, devinfo):
        self.path_mtu = int(re.search(r"active_mtu:\s+(\d+)", devinfo)[1])
        rows = re.findall(r"GID\[ *(\d+)\]:\s+(\S+?)(?:, RoCE v2)?\s*$", devinfo, re.M)
        self.gids = {4: pick(rows, "::ffff:"), 6: pick(rows, "fd91:")}
        if None in self.gids.values():
            raise Failure(f"{self.name} has not all GIDs:\n{devinfo}")


def pick(rows, start):
    return next((index for index, gid in rows if gid.startswith(start)), None)


class UroceSide(Side):
    """Programs of this machine in the network's namespace, under `uroce run`."""
    name, device = "uroce", "uroce0"

    def __init__(self, network, uroce, uplink, *options):
        super().__init__(1)
        of_uplink = UPLINKS[uplink]
        self.addresses = {family: address(of_uplink.number, family) for family in (4, 6)}
        self.inside = network.inside
        self.wrapped = [*network.inside, uroce, "run", *of_uplink.options, "--local", "off"]
        self.wrapped_in(*options)
        self.look_at(self.output(["ibv_devinfo", "-v"]))

    def wrapped_in(self, *options):
        """More options of `uroce run`, for what is started from now on."""
        self.options = list(options)

    def command(self, words, *options):
        return [*self.wrapped, *self.options, *options, "--", *words]

    def start(self, words):
        return Program(self.command(words))

    @contextlib.contextmanager
    def start_listener(self, words, port):
        """A program that listens through librdmacm, and does by now."""
        with Program(self.command(words, "--log", "info")) as program:
            program.wait_for_text(f"rdma_cm: listening to port {port}")
            yield program

    def output(self, words):
        done = subprocess.run(self.command(words), check=False, text=True, timeout=DEADLINE_SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Failure(f"{words[0]} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout


class RxeSide(Side):
    """Programs in the guest, over the kernel's driver."""
    name, device = "rxe", "rxe0"

    def __init__(self, guest):
        super().__init__(guest.number)
        self.guest = guest
        self.look_at(guest.run("ibv_devinfo -v"))

    def start(self, words):
        return self.guest.start(words)

    @contextlib.contextmanager
    def start_listener(self, words, port):
        with self.start(words) as program:
            program.wait_for(f"rdma resource show cm_id | grep -q 'LISTEN.*:{port} '",
                             f"listens to port {port}")
            yield program


@contextlib.contextmanager
def running_pair(server, client, words):
    """Both programs, started. `words(side)` is the command; port and server's address come behind."""
    port = str(free_port())
    with server.start([*words(server), "-p", port]) as serving:
        if not serving.wait_for_listener(int(port)):
            raise Refused(serving.text())
        with client.start([*words(client), "-p", port, server.address]) as asking:
            yield serving, asking


def run_pair(server, client, words, seconds=DEADLINE_SECONDS):
    """The outputs, when both have ended well."""
    with running_pair(server, client, words) as programs:
        collect(programs, seconds)
        return [program.text() for program in programs]
