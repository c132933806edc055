#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""replay.py UROCE_SIM: the command that a failing run prints shows that run as text and as a
capture. tshark and an independent check of the ICRC read the capture, and both tell one story."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CHECK_ICRC = pathlib.Path(__file__).parent.parent / "support" / "check_icrc.py"
# Chosen for the faults in them, and for memory that carries runs.
SEEDS = [7, 17, 39, 43, 51]
FATES = {"sent", "lost", "twice", "corrupt", "blackout", "inbox full"}
PACKET = re.compile(r" *(\d+\.\d{3}) us  (\d)>(\d)  (.*)  \[([a-z ]+)\]")
FIELDS = ("frame.time_epoch", "frame.interface_name", "frame.packet_flags_direction", "ip.src",
          "ip.dst", "udp.dstport", "frame.comment", "infiniband.bth.psn", "_ws.malformed")
# Payloads are random bytes, in which tshark looks for other protocols.
NO_GUESSES = ["--disable-protocol", "rpcordma", "--disable-heuristic", "eth_over_ib",
              "--disable-heuristic", "mellanox_eoib"]
OUTBOUND = 2


def expect(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def traced(text):
    """Of the trace: (time, from, to, fate) of each packet, those of a run one by one."""
    events = collections.Counter()
    runs = 0
    for line in text.splitlines():
        match = PACKET.fullmatch(line)
        if match is None:
            continue
        time, source, target, what, fate = match.groups()
        packets = re.search(r" packets=(\d+)", what)
        runs += packets is not None
        events[round(float(time) * 1000), source, target, fate] += int(packets[1]) if packets else 1
    return events, runs


def captured(path):
    """What left, and what arrived, as in the trace; nothing may be malformed."""
    done = subprocess.run(
        ["tshark", "-n", *NO_GUESSES, "-r", path, "-T", "fields", "-E", "separator=|",
         *(word for field in FIELDS for word in ("-e", field))],
        check=True, capture_output=True, text=True)
    sent, arrived = collections.Counter(), collections.Counter()
    for line in done.stdout.splitlines():
        time, node, direction, source, target, port, fate, psn, malformed = line.split("|")
        expect(port == "4791" and psn and not malformed, f"{path}: {line}")
        source, target = (str(int(address.removeprefix("10.0.0.")) - 1)
                          for address in (source, target))
        is_outbound = int(direction, 0) & 3 == OUTBOUND
        expect(node == f"node {source if is_outbound else target}", f"{path}: {line}")
        key = (round(float(time) * 1e9), source, target, fate or "sent")
        (sent if is_outbound else arrived)[key] += 1
    return sent, arrived


def replay(program, folder, seed):
    path = os.path.join(folder, f"seed-{seed}.pcapng")
    done = subprocess.run([program, "--seed", str(seed), "--trace", "--pcap", path], check=True,
                          capture_output=True, text=True)
    subprocess.run([sys.executable, "-B", CHECK_ICRC, path], check=True, capture_output=True)
    told, runs = traced(done.stdout)
    sent, arrived = captured(path)
    refused = {key: count for key, count in told.items() if key[3] == "inbox full"}
    expect(sent == told - collections.Counter(refused), f"seed {seed}: captured {sent}, traced {told}")
    expect({key: count for key, count in arrived.items() if key[3] != "sent"} == refused,
           f"seed {seed}: inboxes")
    on_their_way = sum(count * {"sent": 1, "twice": 2}.get(key[3], 0) for key, count in sent.items())
    expect(on_their_way == arrived.total(), f"seed {seed}: {on_their_way} or {arrived.total()} came")
    return {key[3] for key in told}, runs


def main(program):
    if shutil.which("tshark") is None:
        print("skipped: tshark is missing")
        return 77
    fates, runs = set(), 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            more_fates, more_runs = replay(program, folder, seed)
            fates |= more_fates
            runs += more_runs
    expect(fates >= FATES and runs > 0, f"the seeds show {fates} and {runs} runs only")
    done = subprocess.run([program, "--seed", "1", "--pcap", "/dev/full"], check=False,
                          capture_output=True, text=True)
    expect(done.returncode == 2 and "No space left on device" in done.stderr, "a full disk is silent")
    print(f"{len(SEEDS)} seeds, {runs} runs, {', '.join(sorted(fates))}")
    return 0


sys.exit(main(sys.argv[1]))
