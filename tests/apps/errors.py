#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What cannot be had gives one clear line, saying what and why, and an exit status."""
import os
import subprocess

import checks
from programs import Failure, Program, free_port
from users import NOBODY, as_nobody

DEVINFO = ["ibv_devinfo"]
# (arguments of uroce, exit status, what the line says)
MESSAGES = {
    "missing_interface": (["run", "--netdev", "nosuch0", "--", *DEVINFO], 1,
                          "there is no interface nosuch0"),
    "missing_interface_for_devices": (["devices", "--netdev", "nosuch0"], 1,
                                      "there is no interface nosuch0"),
    "unknown_uplink": (["run", "--uplink", "pigeon", "--", *DEVINFO], 1,
                       "--uplink pigeon: expected udp, none or dpdk:SPEC"),
    "unknown_local": (["run", "--local", "maybe", "--", *DEVINFO], 1,
                      "--local maybe: expected on or off"),
    "unknown_log_level": (["run", "--log", "loud", "--", *DEVINFO], 1, "--log loud: expected off"),
    "malformed_address": (["run", "--uplink", "none", "--address", "10.0.0.1", "--", *DEVINFO], 1,
                          "is not IP/PREFIX-LENGTH"),
    "address_of_no_host": (["run", "--uplink", "none", "--address", "0.0.0.0/0", "--", *DEVINFO],
                           1, "is no address that a port can have"),
    "unknown_option": (["run", "--nosuch", "--", *DEVINFO], 2, "uroce: the following argument"),
    "missing_configuration": (["run", "--config", "/nosuch.toml", "--", *DEVINFO], 1,
                              "/nosuch.toml: cannot be read: No such file or directory"),
    "missing_program": (["run", "--", "no-such-program"], 127, "no-such-program: not found"),
    "unknown_driver": (["run", "--netdev", "lo", "--uplink", "dpdk:net_nosuch", "--", *DEVINFO], 1,
                       "\"net_nosuch\" is neither a PCI address nor one of net_af_packet"),
    "unknown_driver_without_interface": (["run", "--uplink", "dpdk:nonsense0", "--", *DEVINFO], 1,
                                         "\"nonsense0\" is neither a PCI address nor one of"),
    "missing_interface_of_port": (["run", "--uplink", "dpdk:net_af_packet0,iface=nosuch0", "--",
                                   *DEVINFO], 1, "there is no interface nosuch0"),
    "missing_pci_device": (["run", "--uplink", "dpdk:0000:99:00.0", "--address", "10.9.9.1/24",
                            "--", *DEVINFO], 1, "cannot be opened"),
}


def run_uroce(place, arguments, environment=None):
    """Its exit status, and the lines that are uroce's own where it is not uroce that ends."""
    done = subprocess.run([*place.server_prefix, place.uroce, *arguments], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          env={**os.environ, **(environment or {})})
    lines = done.stdout.splitlines()
    return done.returncode, [line for line in lines if line.startswith("uroce")] or lines


def expect(place, arguments, status, message, environment=None):
    got, lines = run_uroce(place, arguments, environment)
    if got != status or message not in lines[0] or len(lines) > 2:
        raise Failure(f"{' '.join(arguments)}: expected {status} and one line with {message!r}; "
                      f"got {got} and\n" + "\n".join(lines))


def make_check(name, arguments, status, message):
    def check(place, _):
        expect(place, arguments, status, message)
    check.__name__ = name
    return check


def check_environment_variable_is_named(place, _):
    expect(place, ["run", "--", *DEVINFO], 1, "UROCE_UPLINK=pigeon: expected",
           {"UROCE_UPLINK": "pigeon"})


def check_a_capture_that_the_device_cannot_begin(place, _):
    """All that the device had opened before is closed again, which a sanitizer sees."""
    expect(place, ["run", "--netdev", "lo", "--uplink", "udp", "--", "env",
                   "UROCE_PCAP=/nowhere/out.pcapng", *DEVINFO], 1,
           "/nowhere/out.pcapng: cannot be written")


def check_output_to_a_full_disk(place, _):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([*place.server_prefix, place.uroce, "devices", "--netdev", "lo"],
                              check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    expected = "uroce: standard output cannot be written\n"
    if (done.returncode, done.stderr) != (1, expected):
        raise Failure(f"expected 1 and {expected!r}, got {done.returncode} and {done.stderr!r}")


def check_port_held_by_another_user(place, _):
    if os.geteuid() != 0:
        return "not tried: needs root to become another user"
    port = free_port()
    server = ["ibv_rc_pingpong", "-g", "0", "-p", str(port)]
    with Program([*place.server_prefix, *as_nobody(), place.uroce, "run", "--netdev", "lo", "--",
                  *server]) as holder:
        if not holder.wait_for_listener(port):
            raise Failure(f"{holder} did not start:\n{holder.text()}")
        expect(place, ["run", "--netdev", "lo", "--", *DEVINFO], 1,
               f"cannot bind UDP port 4791: it belongs to uid {NOBODY}")
    expect_devinfo = run_uroce(place, ["run", "--netdev", "lo", "--", *DEVINFO])
    if expect_devinfo[0] != 0:
        raise Failure(f"when the holder has ended: {expect_devinfo}")
    return None


HOLD_PORT = """
import socket, sys
held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
held.bind(("", 4791))
with socket.create_server(("", int(sys.argv[1]))) as listening:
    listening.accept()
"""


def check_port_held_by_a_foreign_program(place, _):
    """Of the same user, which shares it no more than another user's does."""
    port = free_port()
    with Program([*place.server_prefix, "python3", "-c", HOLD_PORT, str(port)]) as holder:
        if not holder.wait_for_listener(port):
            raise Failure(f"{holder} did not start:\n{holder.text()}")
        expect(place, ["run", "--netdev", "lo", "--", *DEVINFO], 1,
               "(python3), which does not share it, so it is no program of uroce: end it")
        status, lines = run_uroce(place, ["doctor", "--netdev", "lo"])
        if status != 1 or not any("UDP port 4791 is held by" in line for line in lines):
            raise Failure(f"doctor ended with {status}:\n" + "\n".join(lines))


def check_port_shared_with_another_runtime_directory(place, _):
    """As when one program was started with XDG_RUNTIME_DIR set and the other without."""
    here = os.environ["XDG_RUNTIME_DIR"]
    there = os.path.join(here, "other")
    os.mkdir(there, 0o700)
    port = free_port()
    with Program(place.server_command(["ibv_rc_pingpong", "-g", "0", "-p", str(port)])) as holder:
        if not holder.wait_for_listener(port):
            raise Failure(f"{holder} did not start:\n{holder.text()}")
        arguments = ["run", "--netdev", "lo", "--", *DEVINFO]
        expect(place, arguments, 1, f"set UROCE_RUNTIME_DIR={here}/uroce for this one",
               {"XDG_RUNTIME_DIR": there})
        status, lines = run_uroce(place, arguments, {"XDG_RUNTIME_DIR": there,
                                                     "UROCE_RUNTIME_DIR": f"{here}/uroce"})
        if status != 0:
            raise Failure("having done what the line says:\n" + "\n".join(lines))


if __name__ == "__main__":
    checks.main(__doc__, [*(make_check(name, *row) for name, row in MESSAGES.items()),
                          check_environment_variable_is_named, check_port_held_by_another_user,
                          check_port_held_by_a_foreign_program,
                          check_port_shared_with_another_runtime_directory])
