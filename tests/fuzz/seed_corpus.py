#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""seed_corpus.py FOLDER: what the fuzzers begin with, below FOLDER/TARGET.

parse gets frames of the golden captures, responder and requester the same exchanges as commands
(fuzz/machine.h reads them), config and fault_spec what users write, cm
short lives of connections. The stored corpora are these seeds and what the fuzzers made of them,
merged:

  seed_corpus.py /tmp/seeds
  build/fuzz/tests/fuzz/parse_fuzz -merge=1 corpus/parse /tmp/seeds/parse /tmp/found/parse
"""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
CAPTURES = HERE.parent / "data" / "captures"
BTH, ETHERNET, UDP, ICRC = 12, 14, 8, 4
FRAME_BYTES = 600  # longer ones say nothing new

CONFIGS = {
    "all": "uplink = 'udp'\nnetdev = ['eth0', 'lo']\nlocal = true\nlog = 'warn'\nport = 4791\n"
           "icrc = 'verify'\n",
    "dpdk": "uplink = 'dpdk:net_af_packet0,iface=eth0'\naddress = ['10.0.0.1/24', 'fd00::1/64']\n",
    "bad": "[uplink]\nkind = \"\\u0000\"\n",
    "address": "10.0.0.1/24,fe80::1/64",
    "netdev": "eth0,eth1.5",
    "uplink": "dpdk:0000:03:00.0",
}
# cm_fuzz.cc reads them: an application's act, time, a message.
CM_REQUEST = bytes([2, 0, 2, 1, 1, 0])  # a sound one: identifier 1, queue pair 1
CM_TIME = bytes([1, 10])


def cm_act(what):
    """Of the first connection, without private data."""
    return bytes([0, 0, 1, 0, what, 3, 1])


def cm_message(attribute):
    """It names the first connection, and nothing else."""
    return bytes([2, attribute - 0x10, 1, 0])


CM_STORIES = {
    "passive": CM_REQUEST + cm_act(0) + cm_message(0x14) + cm_message(0x15) + CM_TIME,
    "refused": CM_REQUEST + cm_act(1) + CM_TIME,
    "left": CM_REQUEST + cm_act(0) + cm_act(7) + CM_TIME,
    "active": bytes([0, 0, 1, 1]) + cm_message(0x11) + cm_message(0x13) + cm_act(2) +
              cm_act(3) + cm_message(0x16) + CM_TIME,
    "active-refused": bytes([0, 0, 1, 1]) + cm_message(0x12),
    "sidr": bytes([0, 1]) + cm_message(0x18),
    "sidr-passive": bytes([2, 7, 2, 1]) + cm_act(5),
    "alternate": cm_message(0x19) + cm_message(0x1a),
}
FAULT_SPECS = {
    "all": "loss=1%,dup=0.1%,reorder=2%,delay=50us..2ms,corrupt=0.01%,seed=7",
    "one": "loss=0.5%",
    "delay": "delay=1ms",
}


def frames(path):
    data = path.read_bytes()
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def packet(frame):
    """From the BTH to the pad."""
    ip_bytes = 40 if frame[ETHERNET] >> 4 == 6 else (frame[ETHERNET] & 15) * 4
    return frame[ETHERNET + ip_bytes + UDP:-ICRC]


def length_choice(payload, mtu):
    """As Machine::deliver reads it."""
    if payload in (0, 8, mtu):
        return bytes([{0: 0, 8: 1, mtu: 2}[payload]])
    return bytes([6]) + struct.pack(">H", payload)


def setup(link):
    """Machine's: CQ of 64, the link, path MTU 1024, a timer, 7 retries, 128 READs, no SRQ."""
    return bytes([0, link, 1, 1, 7, 7, 3, 3, 1, 0, 0])


def request_commands(packets):
    yield bytes([1, 1, 2, 0, 0, 16, 0, 0]) * 4  # receives
    for bth in packets:
        if bth[0] > 0x17 or 0x0c < bth[0] < 0x13:
            continue
        payload = max(0, len(bth) - BTH - (16 if bth[0] in (6, 10, 11, 12) else 0))
        # opcode, PSN as expected, area, place, offset, a length not used, key, length, operands
        yield bytes([11, bth[0], 0, 0, 0, 1]) + bytes(4) + bytes([0, 3, 1, 1, 1])
        yield length_choice(payload if bth[0] < 0x0c else 0, 1024) + bytes([8])


def post_commands(packets):
    kinds = {4: 0, 5: 1, 0: 0, 0x0a: 2, 0x0b: 3, 6: 2, 0x0c: 4, 0x13: 5, 0x14: 6}
    for bth in packets:
        if bth[0] not in kinds:
            continue
        # operation, flags, remote address, key, operand, one SGE of a length
        yield bytes([1, kinds[bth[0]], 1, 4, 0, 0, 1, 1, 2, 0, 0, 1024 >> 8, 0, 0])
        yield bytes([8, 10, 6, 255])  # transmit, an answer, poll


def write(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def seed_captures(root):
    for path in sorted(CAPTURES.glob("*.pcap")):
        seen = list(frames(path))
        short = {packet(f)[0]: f for f in seen if len(f) <= FRAME_BYTES}
        for opcode, frame in short.items():
            write(root / "parse", f"{path.stem}-{opcode:02x}", frame)
            write(root / "parse", f"{path.stem}-{opcode:02x}-bth", packet(frame))
        packets = [packet(f) for f in seen][:40]
        for link in range(3):
            name = f"{path.stem}-{link}"
            write(root / "responder", name, setup(link) + b"".join(request_commands(packets)))
            write(root / "requester", name, setup(link) + b"".join(post_commands(packets)))


def main(root):
    seed_captures(root)
    for name, story in CM_STORIES.items():
        write(root / "cm", name, story)
        write(root / "cm", f"{name}-twice", story * 2)
    for target, texts in (("config", CONFIGS), ("fault_spec", FAULT_SPECS)):
        for name, text in texts.items():
            write(root / target, name, text.encode())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
