#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_icrc.py [-v] FILE... - an independent check of RoCEv2 captures.

Reads pcap and pcapng files (Ethernet, IPv4 or IPv6, UDP port 4791), computes the ICRC of
every packet from its bytes and compares it with the one on the wire. With -v
it prints one line a packet. Exits with 1 if one differs or a file has none.

ICRC (InfiniBand Architecture, RoCEv2 annex A17): CRC-32 as in Ethernet, over
eight bytes of 0xff (in place of LRH), the IP header, the UDP header, BTH and
all up to the ICRC, where these bytes count as 0xff: IPv4 type of service,
time to live and header checksum; IPv6 traffic class, flow label and hop limit;
UDP checksum; BTH byte 4 (the one with FECN and BECN). It is stored least
significant byte first.
"""
import struct
import sys
import zlib

OPS = {0x04: "SEND_ONLY", 0x64: "UD_SEND_ONLY", 0x65: "UD_SEND_ONLY_IMM"}
NAMES = ["SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_ONLY", "SEND_ONLY_IMM",
         "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY",
         "WRITE_ONLY_IMM", "READ_REQ", "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST",
         "READ_RESP_ONLY", "ACK", "ATOMIC_ACK", "CMP_SWAP", "FETCH_ADD", "RESERVED",
         "SEND_LAST_INV", "SEND_ONLY_INV"]


def packets(path):
    data = open(path, "rb").read()
    magic = struct.unpack_from("<I", data)[0]
    if magic == 0x0A0D0D0A:
        yield from pcapng_packets(data)
        return
    end = {0xA1B2C3D4: "<", 0xA1B23C4D: "<"}.get(magic, ">")
    off = 24
    while off + 16 <= len(data):
        _, _, caplen, _ = struct.unpack_from(end + "IIII", data, off)
        yield data[off + 16:off + 16 + caplen]
        off += 16 + caplen


def pcapng_packets(data):
    """Of the enhanced packet blocks; little-endian files only."""
    off = 0
    while off + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, off)
        if kind == 6:
            caplen = struct.unpack_from("<I", data, off + 20)[0]
            yield data[off + 28:off + 28 + caplen]
        off += length


def roce(frame):
    """(masked IP header, UDP header, payload, source, destination) or None"""
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == 0x0800:
        ihl = (frame[14] & 15) * 4
        total = struct.unpack_from("!H", frame, 16)[0]
        if frame[23] != 17:
            return None
        ip = bytearray(frame[14:14 + ihl])
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF
        end, at = 14 + total, 14 + ihl
    elif kind == 0x86DD:
        if frame[20] != 17:
            return None
        ip = bytearray(frame[14:54])
        ip[0] |= 0x0F
        ip[1] = ip[2] = ip[3] = ip[7] = 0xFF
        at = 54
        end = at + struct.unpack_from("!H", frame, 18)[0]
    else:
        return None
    udp = bytearray(frame[at:at + 8])
    if struct.unpack_from("!H", udp, 2)[0] != 4791:
        return None
    return ip, udp, frame[at + 8:end], frame


def icrc(ip, udp, payload):
    udp = bytearray(udp)
    udp[6] = udp[7] = 0xFF
    body = bytearray(payload[:-4])
    body[4] = 0xFF
    return zlib.crc32(b"\xff" * 8 + bytes(ip) + bytes(udp) + bytes(body))


def describe(udp, p):
    op, flags, pkey = p[0], p[1], struct.unpack_from("!H", p, 2)[0]
    qp = int.from_bytes(p[5:8], "big")
    psn = int.from_bytes(p[9:12], "big")
    kind = ["RC", "UC", "RD", "UD"][op >> 5] if op < 0x80 else "%02x" % op
    name = NAMES[op & 31] if (op & 31) < len(NAMES) else "?"
    extra = ""
    if kind == "RC" and op in (0x11, 0x12):
        extra = " syndrome=0x%02x msn=%d" % (p[12], int.from_bytes(p[13:16], "big"))
    return "%s %-16s se=%d migreq=%d pad=%d tver=%d pkey=%04x qp=%06x ack_req=%d psn=%06x sport=%d%s" % (
        kind, name, flags >> 7, flags >> 6 & 1, flags >> 4 & 3, flags & 15, pkey, qp, p[8] >> 7, psn,
        struct.unpack_from("!H", udp)[0], extra)


def main():
    args = [a for a in sys.argv[1:] if a != "-v"]
    verbose = len(args) != len(sys.argv) - 1
    bad = False
    for path in args:
        good = wrong = other = 0
        for n, frame in enumerate(packets(path), 1):
            r = roce(frame)
            if not r:
                other += 1
                continue
            ip, udp, payload, _ = r
            want = icrc(ip, udp, payload)
            got = struct.unpack("<I", payload[-4:])[0]
            good, wrong = good + (want == got), wrong + (want != got)
            if verbose or want != got:
                print("%4d %s icrc=%08x%s" % (n, describe(udp, payload), got,
                                              "" if want == got else " EXPECTED %08x" % want))
        print("%s: %d ICRC right, %d wrong, %d other packets" % (path, good, wrong, other))
        bad |= wrong > 0 or good == 0
    return bad


sys.exit(main())
