# SPDX-License-Identifier: BSD-2-Clause
"""A guest with Linux's own soft RoCE, in a small virtual machine, and the network between it and us:

    host0 10.91.0.1 fd91::1 --veth-- bridge --tap2-- the guest's eth0 10.91.0.2 fd91::2, rxe0

All of it is in a network namespace that ends with this script. Commands reach the guest through a card
of its own, so that eth0 is the tests' to spoil."""
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import image
from environment import skip
from places import Host
from programs import DEADLINE_SECONDS, Failure, Program, wait_until

HERE = pathlib.Path(__file__).parent
MTU = 4200  # Ethernet's, for a path MTU of 4096, where nothing needs another one
MEMORY_MIB = 640


def skip_without_means():
    if os.geteuid() != 0:
        skip("interop: needs root, for a network namespace and a tap interface")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("interop: needs /dev/net/tun")
    missing = [name for name in image.NEEDED if shutil.which(name) is None]
    if missing:
        skip(f"interop: needs {', '.join(missing)} (scripts/install-packages.sh test)")


def address(number, family=4):
    return f"10.91.0.{number}" if family == 4 else f"fd91::{number}"


class Network:
    """The namespace with host0 and the bridge; more ends join the bridge by `tap`."""

    def __init__(self, mtu):
        self.mtu = str(mtu)
        self.host = Host()
        self.inside = self.host.inside
        for key in ("accept_dad", "router_solicitations"):
            self.write(f"/proc/sys/net/ipv6/conf/default/{key}", "0")
        self.host.ip("link", "add", "bridge", "type", "bridge", "stp_state", "0", "mcast_snooping", "0")
        self.host.ip("link", "add", "host0", "type", "veth", "peer", "name", "host0p")
        self.join("host0p")
        self.host.ip("link", "set", "host0", "mtu", self.mtu)
        self.host.address("host0", f"{address(1)}/24", f"{address(1, 6)}/64")
        self.host.ip("link", "set", "bridge", "up")

    def write(self, path, text):
        subprocess.run([*self.inside, "sh", "-c", f"echo {text} > {path}"], check=True)

    def join(self, interface):
        self.host.ip("link", "set", interface, "mtu", self.mtu, "master", "bridge", "up")

    def tap(self, name):
        self.host.ip("tuntap", "add", "dev", name, "mode", "tap")
        self.join(name)

    def tap_for_port(self, name):
        """A tap at whose far end is a port of DPDK's, and which stays when that goes. Both ends have the
        same MAC, and a bridge keeps what is sent to one of its own: all is redirected to a veth."""
        self.host.ip("tuntap", "add", "dev", name, "mode", "tap", "multi_queue")
        self.host.ip("link", "add", f"{name}v", "type", "veth", "peer", "name", f"{name}p")
        self.join(f"{name}p")
        for interface, other in ((name, f"{name}v"), (f"{name}v", name)):
            self.host.ip("link", "set", interface, "mtu", self.mtu, "up")
            self.tc("qdisc", "add", "dev", interface, "ingress")
            self.tc("filter", "add", "dev", interface, "parent", "ffff:", "protocol", "all", "u32",
                    "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", other)

    def veth_for_port(self, name, number):
        """An interface for a port that takes all that comes, so that the kernel has none of it. What the
        kernel sends to that network, TCP, goes by host0, which does not answer for the port."""
        self.write("/proc/sys/net/ipv4/conf/host0/arp_ignore", "1")
        self.host.ip("link", "add", "name", name, "type", "veth", "peer", "name", f"{name}p")
        self.join(f"{name}p")
        self.host.ip("link", "set", name, "mtu", self.mtu, "up")
        for text in (f"{address(number)}/24", f"{address(number, 6)}/64"):
            self.host.ip("addr", "add", text, "dev", name, "noprefixroute",
                         *(["nodad"] if ":" in text else []))

    def tc(self, *arguments):
        image.run(*self.inside, "tc", *arguments)

    def close(self):
        self.host.close()


class InGuest(Program):
    """A command of the guest's, as a program of ours: it ends when this does."""

    def __init__(self, command, guest, **options):
        self.guest = guest
        super().__init__(command, **options)

    def wait_for(self, condition, what):
        """Until the command `condition` succeeds there. False when the program ended before."""
        with Program(self.guest.command(f"until {condition}; do sleep 0.02; done")) as search:
            wait_until(lambda: self.has_ended() or search.has_ended(), f"{self} {what}")
            return search.has_ended()

    def wait_for_listener(self, port):
        return self.wait_for(f"grep -q ':{port:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6",
                             f"listens on port {port}")


class Guest:
    """One virtual machine, booted; number 2 and above."""

    def __init__(self, network, paths, number=2, processor="max"):
        self.network = network
        self.number = number
        self.port = 2300 + number
        network.tap(f"tap{number}")
        self.machine = Program([*network.inside, *self.machine_command(*paths, processor)])
        said = re.compile(r"interop-guest: (\w+).*\n")
        wait_until(lambda: said.search(self.machine.text()) or self.machine.has_ended(),
                   "the guest is up")
        found = said.search(self.machine.text())
        if found is None or found[1] != "ready":
            raise Failure(f"the guest did not come up:\n{self.machine.text()}")

    def machine_command(self, kernel, files, processor):
        mac, control_mac = (f"02:00:00:91:0{kind}:{self.number:02x}" for kind in (0, 1))
        words = {"mtu": self.network.mtu, "address": f"{address(self.number)}/24", "mac": mac,
                 "address6": f"{address(self.number, 6)}/64", "control_mac": control_mac}
        return ["qemu-system-x86_64", "-accel", accelerator(), "-cpu", processor, "-smp", "2",
                "-m", str(MEMORY_MIB), "-machine", "pc,graphics=off,usb=off,vmport=off",
                "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none",
                "-serial", "stdio", "-kernel", str(kernel), "-initrd", str(files), "-append",
                "console=ttyS0 quiet loglevel=4 panic=-1 nokaslr mitigations=off no_timer_check "
                "tsc=reliable random.trust_cpu=on cryptomgr.notests " +
                " ".join(f"{key}={value}" for key, value in words.items()),
                "-netdev", f"tap,id=data,ifname=tap{self.number},script=no,downscript=no,vnet_hdr=off",
                "-device", f"virtio-net-pci,netdev=data,mac={mac},romfile=,rx_queue_size=1024",
                "-netdev", "user,id=control,restrict=on,ipv6=off,"
                           f"hostfwd=tcp:127.0.0.1:{self.port}-10.0.2.15:2323",
                "-device", f"virtio-net-pci,netdev=control,mac={control_mac},romfile=",
                "-device", "virtio-rng-pci"]

    def command(self, text, *files):
        """What to run here for a shell command there."""
        return [*self.network.inside, sys.executable, "-B", str(HERE / "run_in_guest.py"),
                str(self.port), text, *files]

    def start(self, words, **options):
        return InGuest(self.command(shlex.join(words)), self, **options)

    def run(self, text, *files):
        done = subprocess.run(self.command(text, *files), check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=DEADLINE_SECONDS)
        if done.returncode != 0:
            raise Failure(f"in the guest, {text} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def put(self, file, path):
        quoted = shlex.quote(path)
        self.run(f"head -c {os.path.getsize(file)} > {quoted} && chmod +x {quoted}", str(file))

    def close(self):
        self.machine.kill()


def accelerator():
    """The processor's own means where there are any: it may have the device and not them."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").split()
    if os.access("/dev/kvm", os.W_OK) and {"svm", "vmx"} & set(flags):
        return "kvm"
    return "tcg,thread=multi,tb-size=256"


@contextlib.contextmanager
def guests(options, count=1, mtu=MTU, **of_guest):
    """Booted guests with `options.tool` in them, and the network."""
    paths = image.make(options.cache, options.agent)
    network, booted = Network(mtu), []
    try:
        for number in range(2, 2 + count):
            booted.append(Guest(network, paths, number, **of_guest))
            booted[-1].put(options.tool, "/usr/bin/verbs_peer")
        yield network, booted
    finally:
        for guest in booted:
            guest.close()
        network.close()
