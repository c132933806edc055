# SPDX-License-Identifier: BSD-2-Clause
"""What has been promised, each bar held against the medians of this run.

A bar is met or not met; there is no tolerance beyond what it says itself.
"""
import dataclasses
from typing import Callable

import cases
from cases import (CORE, HAND_OVER, TCP, core, latency, old_rate, rate, send_rate, ucx_bandwidth,
                   ucx_rate, write)

KIB64, MIB = cases.SIZES


@dataclasses.dataclass(frozen=True)
class Bar:
    text: str
    needs: tuple          # names of metrics; of a tuple among them the greatest counts
    value: Callable       # of the medians of `needs`
    limit: float
    is_minimum: bool
    unit: str = ""


def share(text, name, of, limit):
    return Bar(f"{text}: at least {limit} of it", (name, of), lambda a, b: a / b, limit, True)


def core_bar(name, copy):
    return Bar(f"core, {CORE[name]}, less the copy: under 150 ns a packet",
               (core(CORE[name]), core(CORE[copy])), lambda whole, alone: whole - alone, 150, False,
               "ns")


BARS = [
    share("shm 64 KiB beside UCX shm", write("shm", KIB64, 4096), ucx_bandwidth("UCX shm", KIB64),
          0.7),
    share("shm 1 MiB beside UCX shm", write("shm", MIB, 4096), ucx_bandwidth("UCX shm", MIB), 0.7),
    share("shm 64 KiB, path MTU 1024 beside 4096", write("shm", KIB64, 1024),
          write("shm", KIB64, 4096), 0.9),
    share("shm 1 MiB, path MTU 1024 beside 4096", write("shm", MIB, 1024),
          write("shm", MIB, 4096), 0.9),
    Bar("shm ib_send_lat 8 B: at most 4 hand-overs of a cache line",
        (latency("shm", "ib_send_lat"), HAND_OVER), lambda us, ns: us * 1000 / ns, 4, False),
    Bar("shm ib_write_lat 8 B: at most 40 us", (latency("shm", "ib_write_lat"),), lambda us: us, 40,
        False, "us"),
    share("shm ib_write_bw -s 8 beside UCX shm", rate("shm"), ucx_rate("UCX shm"), 0.12),
    share("udp 1 MiB, path MTU 4096 beside TCP", write("udp", MIB, 4096), TCP, 0.7),
    share("udp 1 MiB, path MTU 1024 beside TCP", write("udp", MIB, 1024), TCP, 0.5),
    share("memif 1 MiB, path MTU 4096 beside TCP", write("memif", MIB, 4096), TCP, 0.5),
    core_bar("write_4096", "copy_alone/bytes:65536"),
    core_bar("write_65536/run:1", "copy_alone/bytes:262144"),
    # Not slower, but for what two runs of the same differ by.
    *(share(f"{place} ibv_wr_* beside ibv_post_send", rate(place), old_rate(place), 0.95)
      for place in ("shm", "udp")),
    *(share(f"{place} SEND of 8 B over UD beside RC", send_rate(place, "UD"),
            send_rate(place, "RC"), 0.8) for place in ("shm", "udp", "af_packet", "memif")),
]


def median_of(medians, name):
    """None where it was not measured; of several the greatest that was."""
    if isinstance(name, str):
        return medians.get(name)
    return max((medians[n] for n in name if n in medians), default=None)


def judge(bar, medians):
    """("met" | "not met" | "not measured", the bar's value, the medians it comes from)."""
    values = [median_of(medians, name) for name in bar.needs]
    if None in values:
        return "not measured", None, values
    value = bar.value(*values)
    is_met = value >= bar.limit if bar.is_minimum else value <= bar.limit
    return ("met" if is_met else "not met"), value, values
