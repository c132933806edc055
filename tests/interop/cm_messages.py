# SPDX-License-Identifier: BSD-2-Clause
"""Messages of the communication manager in a capture (IBTA 12.6), and a comparison of what uroce says
with what Linux says, byte for byte but for what is each side's own."""
import collections

from interop_checks import expect

HEADERS = 12 + 8  # BTH and DETH, in front of the 256 bytes of a management datagram
BODY = 24
NAMES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP",
         0x17: "SIDR_REQ", 0x18: "SIDR_REP"}
# Of each message, where in its body the fields lie that are each side's own.
FIELDS = {
    "REQ": {"local id": (0, 4), "port of the service": (14, 16), "GUID": (16, 24), "QPN": (32, 35),
            "PSN": (44, 47), "local GID": (56, 72), "remote GID": (72, 88), "flow label and rate": (88, 92),
            "port": (142, 144), "source": (144, 160), "destination": (160, 176)},
    "REP": {"local id": (0, 4), "remote id": (4, 8), "QPN": (12, 15), "PSN": (20, 23), "GUID": (28, 36)},
    "RTU": {"local id": (0, 4), "remote id": (4, 8)},
    "MRA": {"local id": (0, 4), "remote id": (4, 8)},
    "REJ": {"local id": (0, 4), "remote id": (4, 8)},
    "DREQ": {"local id": (0, 4), "remote id": (4, 8), "QPN": (8, 11)},
    "DREP": {"local id": (0, 4), "remote id": (4, 8)},
    "SIDR_REQ": {"local id": (0, 4), "port": (18, 20), "source": (20, 36), "destination": (36, 52)},
    "SIDR_REP": {"remote id": (0, 4), "QPN": (8, 11)},
}
TRANSACTION = (8, 16)

Message = collections.namedtuple("Message", "sender name mad")


def cut(data, span):
    return data[span[0]:span[1]]


def field(message, name):
    return cut(message.mad[BODY:], FIELDS[message.name][name])


def messages(packets):
    """Of packets that are datagrams to QP1."""
    found = []
    for packet in packets:
        if packet.qp == 1:
            expect(not packet.invalid and len(packet.payload) == HEADERS + 256 + 4, f"MAD: {packet}")
            mad = packet.payload[HEADERS:-4]
            found.append(Message(packet.ip, NAMES[int.from_bytes(mad[16:18], "big")], mad))
    return found


def conversation(found):
    """The first of each kind by name: who sends again says the same."""
    first = {}
    for message in found:
        known = first.setdefault(message.name, message)
        expect(known.sender == message.sender and known.mad == message.mad,
               f"two different {message.name}: {known}, {message}")
    return first


def without_own(message):
    mad = bytearray(message.mad)
    for begin, end in [(TRANSACTION[0] - BODY, TRANSACTION[1] - BODY), *FIELDS[message.name].values()]:
        mad[BODY + begin:BODY + end] = bytes(end - begin)
    return mad


def expect_alike(one, other):
    """Two messages of a kind, of different senders."""
    pairs = zip(without_own(one), without_own(other))
    differing = [f"byte {at - BODY} of the {one.name}: {a:#x} of {one.sender}, {b:#x} of {other.sender}"
                 for at, (a, b) in enumerate(pairs) if a != b]
    expect(not differing, "\n".join(differing))


def expect_answers(talk, asked, answered):
    """The identifiers, where both know both, and the transaction."""
    one, other = talk[asked], talk[answered]
    expect(cut(one.mad, TRANSACTION) == cut(other.mad, TRANSACTION), f"transaction: {one}, {other}")
    for mine, theirs in (("local id", "remote id"), ("remote id", "local id")):
        if mine in FIELDS[asked] and theirs in FIELDS[answered]:
            swaps = one.sender != other.sender
            expect(field(one, mine) == field(other, theirs if swaps else mine),
                   f"{mine}: {one}, {other}")
