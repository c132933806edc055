#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What uroce puts on the wire, captured between it and Linux's rxe: tshark finds nothing malformed, an
independent check finds each ICRC right, and every field is as IBTA has it and as a ConnectX sends it.
What rxe sends is held to the same where it keeps to it."""
import collections
import contextlib
import pathlib
import signal
import subprocess
import sys
import tempfile

import interop_checks
from interop_checks import both_ways, expect
from guest import address
from operations import run_tool
from programs import Program, wait_until

CHECK_ICRC = pathlib.Path(__file__).resolve().parent.parent / "support" / "check_icrc.py"
MTU = 1024
# request: the opcodes of its packets, those of the answer
REQUESTS = {
    "send:0": ([4], [17]),
    "send:7": ([4], [17]),
    "send:1024": ([4], [17]),
    "send:2049": ([0, 1, 2], [17]),
    "send_imm:1": ([5], [17]),
    "send_imm:2046": ([0, 3], [17]),
    "write:0": ([10], [17]),
    "write:3": ([10], [17]),
    "write:3073": ([6, 7, 7, 8], [17]),
    "write_imm:5": ([11], [17]),
    "write_imm:1026": ([6, 9], [17]),
    "read:0": ([12], [16]),
    "read:6": ([12], [16]),
    "read:2049": ([12], [13, 14, 15]),
    "add": ([20], [18]),
    "swap": ([19], [18]),
    "send_invalidate:9": ([23], [17]),
    "send_invalidate:1025": ([0, 22], [17]),
}
LASTS = {2, 3, 4, 5, 8, 9, 10, 11, 12, 19, 20, 22, 23}  # a message's last or only packet, a request
ANSWERS = {13, 14, 15, 16, 17, 18}
WITH_AETH = {13, 15, 16, 17, 18}
# Bytes from the BTH on that are header.
HEADERS = {0: 12, 1: 12, 2: 12, 3: 16, 4: 12, 5: 16, 6: 28, 7: 12, 8: 12, 9: 16, 10: 28, 11: 32, 12: 28,
           13: 16, 14: 12, 15: 16, 16: 16, 17: 16, 18: 24, 19: 40, 20: 40, 22: 16, 23: 16}

Packet = collections.namedtuple("Packet", "ip opcode se migrated pad version p_key qp ack reserved psn "
                                          "syndrome msn invalid payload")
FIELDS = ["ip.src", "ipv6.src", *(f"infiniband.bth.{name}" for name in (
    "opcode", "se", "m", "padcnt", "tver", "p_key", "destqp", "a", "reserved7", "psn")),
          "infiniband.aeth.syndrome", "infiniband.aeth.msn", "_ws.malformed", "udp.payload"]


# What is read last from a capture that is complete.
MARK = b"this is the last packet"
SEND_MARK = f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
    last.sendto({MARK}, ("{address(2)}", 9))
"""


@contextlib.contextmanager
def capture(network, path):
    """What passes the guest's tap, from the beginning to the end of the block."""
    with Program([*network.inside, "dumpcap", "-q", "-i", "tap2", "-f", "udp port 4791 or udp port 9",
                  "-w", path, "-B", "16"]) as dumpcap:
        dumpcap.wait_for_text("File: ")
        yield
        subprocess.run([*network.inside, sys.executable, "-c", SEND_MARK], check=True)
        wait_until(lambda: MARK in pathlib.Path(path).read_bytes(), "the capture is complete")
        dumpcap.signal(signal.SIGINT)
        expect(dumpcap.wait() == 0, dumpcap.text())


def number(text):
    return int(text, 0) if text else None


def dissected(path):
    """Short payloads are no RPC, whatever tshark makes of them."""
    done = subprocess.run(
        ["tshark", "-n", "--disable-protocol", "rpcordma", "-r", path, "-Y", "infiniband", "-T", "fields", "-E",
         "separator=|", *(word for field in FIELDS for word in ("-e", field))],
        check=True, capture_output=True, text=True)
    packets = []
    for line in done.stdout.splitlines():
        ip4, ip6, *numbers, invalid, payload = line.split("|")
        packets.append(Packet(ip4 or ip6, *map(number, numbers), invalid, bytes.fromhex(payload)))
    return packets


def check_icrcs(path):
    done = subprocess.run([sys.executable, "-B", CHECK_ICRC, path], check=False, text=True,
                          capture_output=True)
    expect(done.returncode == 0, done.stdout)


def captured(network, server, client, requests):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/wire.pcapng"
        with capture(network, path):
            run_tool(server, client, requests, options=f"-m {MTU}")
        check_icrcs(path)
        return dissected(path)


def expect_fields(packet):
    """The same for every packet."""
    data = packet.payload
    length = len(data) - 4 - packet.pad - HEADERS[packet.opcode]
    expect(not packet.invalid and packet.version == 0 and packet.p_key == 0xffff and packet.se == 0 and
           packet.reserved == 0 and data[4] == 0, f"header: {packet}")
    expect(length >= 0 and packet.pad == -length % 4, f"pad: {packet}")
    expect(data[len(data) - 4 - packet.pad:len(data) - 4] == bytes(packet.pad), f"pad bytes: {packet}")
    if packet.opcode in WITH_AETH:  # an acknowledgement, without credits
        expect(packet.syndrome == 0x1f, f"syndrome: {packet}")


def without_repeats(packets):
    """Either side sends again what is answered late, and answers again what it was sent again."""
    first = {}
    for packet in packets:
        first.setdefault((packet.qp, packet.opcode, packet.psn), packet)
    return list(first.values())


def expect_requests(packets):
    expected = [opcode for requests, _ in REQUESTS.values() for opcode in requests]
    expect([packet.opcode for packet in packets] == expected, f"{[p.opcode for p in packets]}")
    psn, reads = packets[0].psn, iter(answers for requests, answers in REQUESTS.values()
                                      if requests == [12])
    for packet in packets:
        expect(packet.psn == psn, f"PSN {psn} expected: {packet}")
        expect(packet.ack == 1 or packet.opcode not in LASTS, f"AckReq: {packet}")
        psn = (psn + (len(next(reads)) if packet.opcode == 12 else 1)) & 0xffffff


def expect_answers(packets):
    """Acknowledgements of what is not a message's end may come as well: they are left out."""
    expected = [opcode for _, answers in REQUESTS.values() for opcode in answers]
    msn, at = 0, 0
    for packet in packets:
        if packet.opcode == 17 and packet.msn == msn:
            continue
        expect(at < len(expected) and packet.opcode == expected[at], f"answer {at}: {packet}")
        expect(packet.ack == 0, f"AckReq: {packet}")
        at += 1
        if packet.opcode in {13, 16, 17, 18}:
            msn += 1
        expect(packet.msn in (msn, None), f"MSN {msn} expected: {packet}")
    expect(at == len(expected), f"{len(expected) - at} answers are missing")


def wire(server, client):
    network = next(side.guest for side in (server, client) if side.name == "rxe").network
    packets = captured(network, server, client, " ".join(REQUESTS))
    for packet in packets:
        expect_fields(packet)
        if packet.ip == address(1):
            expect(packet.migrated == 1, f"MigReq: {packet}")
    requests = [packet for packet in packets if packet.opcode not in ANSWERS]
    expect({packet.ip for packet in requests} == {client.address}, "requests from the server")
    expect_requests(without_repeats(requests))
    expect_answers(without_repeats(packet for packet in packets if packet.opcode in ANSWERS))
    return f"{len(packets)} packets"


if __name__ == "__main__":
    interop_checks.main(interop_checks.parser_for(__doc__), lambda _: both_ways(wire))
