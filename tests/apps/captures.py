#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures that --pcap writes, as tshark and an independent check of the ICRC read them; and what
becomes of programs whose --pcap or --fault cannot be."""
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import checks
from faults import counted, with_options
from pairs import run_pair
from programs import Failure

CHECK_ICRC = pathlib.Path(__file__).parent.parent / "support" / "check_icrc.py"
ITERATIONS = 20
PINGPONG = ["ibv_rc_pingpong", "-c", "-g", "0", "-m", "1024", "-s", "4096", "-n", str(ITERATIONS)]
SEND_FIRST, SEND_MIDDLE, SEND_LAST, ACKNOWLEDGE = "0", "1", "2", "17"
OUTBOUND, INBOUND = "2", "1"


def expect(condition, what):
    if not condition:
        raise Failure(what)


def dissected(path):
    """(opcode, direction, source address) of each packet; nothing may be malformed."""
    if shutil.which("tshark") is None:
        raise Failure("tshark is missing")
    done = subprocess.run(
        ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=|",
         *(word for field in ("infiniband.bth.opcode", "frame.packet_flags_direction", "ip.src",
                              "_ws.malformed", "frame.interface_name") for word in ("-e", field))],
        check=True, capture_output=True, text=True)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    expect(rows and not any(row[3] for row in rows), f"{path}: malformed:\n{done.stdout}")
    return [(row[0], str(int(row[1], 0) & 3), row[2], row[4]) for row in rows]


def check_icrcs(path):
    done = subprocess.run([sys.executable, "-B", CHECK_ICRC, path], check=False, text=True,
                          capture_output=True)
    expect(done.returncode == 0, done.stdout)


def captured(place, *options):
    """Runs a pingpong whose programs write to one FILE; the two captures and the output."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = os.path.join(folder, "out.pcapng")
        texts = run_pair(with_options(place, "--pcap", path, *options), PINGPONG)
        files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        expect(len(files) == 2 and path in files, f"not a file for each program: {files}")
        for file in files:
            check_icrcs(file)
        return [dissected(file) for file in files], texts


def check_both_ends_see_every_packet(place, _):
    captures, _ = captured(place)
    for packets in captures:
        opcodes = collections.Counter(opcode for opcode, *_ in packets)
        # At least: a memif loses what is sent before the other end is there, and what is late is
        # sent again.
        expect(set(opcodes) == {SEND_FIRST, SEND_MIDDLE, SEND_LAST, ACKNOWLEDGE} and
               opcodes[SEND_FIRST] >= 2 * ITERATIONS and opcodes[SEND_LAST] >= 2 * ITERATIONS and
               opcodes[SEND_MIDDLE] >= 4 * ITERATIONS and opcodes[ACKNOWLEDGE] >= ITERATIONS,
               f"opcodes: {opcodes}")
        directions = collections.Counter(direction for _, direction, *_ in packets)
        expect(directions[INBOUND] >= 4 * ITERATIONS <= directions[OUTBOUND], f"{directions}")
        names = {name for *_, name in packets}
        expect(len(names) == 1 and names.pop().startswith("uroce0-"), f"interfaces: {names}")
        addresses = {address for _, _, address, _ in packets}
        expected = {"10.79.0.1", "10.79.0.2"} if place.name == "memif" else {place.address}
        expect(addresses == expected, f"addresses: {addresses}")
    return f"{len(captures[0])} packets"


def check_losses_are_behind_the_sender(place, _):
    """What was lost is in the sender's capture only: exactly as many as were counted. What is sent
    again when the other has ended is not: so one of three tries has to show it."""
    spared = f"packets={(ITERATIONS - 2) * 5}"
    tries = []
    for _ in range(3):
        captures, texts = captured(place, "--fault", f"loss=10%,seed=5,{spared}", "--log", "info")
        sent, received = (sum(direction == wanted for packets in captures
                              for _, direction, *_ in packets) for wanted in (OUTBOUND, INBOUND))
        lost = counted(texts, "faults_lost")
        if lost > 0 and sent - received == lost:
            return f"{lost} of {sent} lost"
        tries.append(f"{sent} sent, {received} received, {lost} lost")
    raise Failure("; ".join(tries))


def check_a_full_disk_ends_the_capture_only(place, _):
    texts = run_pair(with_options(place, "--pcap", "/dev/full"), PINGPONG)
    expect(any("/dev/full: No space left on device; the capture ends here" in text
               for text in texts), "\n".join(texts))


def check_what_cannot_be_is_said_before_the_program_starts(place, _):
    for option, value, words in (
            ("--fault", "lost=1%", "--fault lost=1%: 'lost' is no kind of fault"),
            ("--fault", "loss=200%", "loss=200%: above 100%"),
            ("--fault", "delay=2ms..1ms", "the range is backwards"),
            ("--pcap", "/nowhere/out.pcapng", "/nowhere/out.pcapng: cannot be written")):
        command = with_options(place, option, value).server_command(["echo", "it", "has", "begun"])
        done = subprocess.run(command, check=False, text=True, capture_output=True)
        expect(done.returncode == 1 and not done.stdout and words in done.stderr and
               done.stderr.count("\n") == 1, f"{done.returncode}: {done.stdout}{done.stderr}")


def check_the_commands_of_a_script_share_a_file(place, _):
    """Each is a section behind the other's; the next `uroce run` begins anew."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.pcapng")
        other = with_options(place, "--pcap", path)
        other.output(["sh", "-c", "ibv_devinfo && ibv_devinfo"])
        twice = os.path.getsize(path)
        other.output(["ibv_devinfo"])
        once = os.path.getsize(path)
        expect(twice > 1.5 * once > 0, f"{twice} bytes, then {once}")


if __name__ == "__main__":
    sys.exit(checks.main(__doc__, [function for name, function in list(globals().items())
                                   if name.startswith("check_") and name != "check_icrcs"]))
