# SPDX-License-Identifier: BSD-2-Clause
"""The rules of check_tidy.py: limits, banned words, and the exceptions with their reasons."""
import re

FILE_LINES = 600
FUNCTION_LINES = 70

# For C and C++: the rule's name, a pattern (matched against code without comments and literals),
# the folders (or "*.suffix") where it holds, those where it does not, what to do instead.
EVERYWHERE = ["include", "src", "providers", "tests", "bench", "examples"]
CORE = ["src/base", "src/wire", "src/memory", "src/steering", "src/transport", "src/cm"]
CODE = [
    ("clock", r"::now\s*\(|\bclock_gettime\s*\(", ["src", "providers"], ["src/engine/clock"],
     "take `now` as a parameter; only engine/clock reads a clock"),
    ("random", r"\bs?rand\s*\(|\brandom_device\b", ["src", "providers"], [],
     "keys come from getrandom; tests from a seeded generator"),
    ("sleep", r"\b[un]?sleep\s*\(|\bnanosleep\b|\bsleep_(for|until)\b",
     ["src", "providers", "tests"], ["src/engine"],  # whose helper thread is there to sleep
     "wait for the thing itself, with a deadline"),
    ("thread", r"\bstd::j?thread\b", ["src", "providers"], ["src/engine"],
     "only engine starts threads"),
    ("heap", r"(?<!operator )\bnew\b(?!\s*\()|\b([mc]|re)alloc\s*\(|\bfree\s*\(", CORE, [],
     "the core owns no memory; take a span"),
    ("byte-order", r"\b(nto|hto)(hl|hs|nl|ns)\s*\(|\b(be|le)\d\dtoh\b|\bhto(be|le)\d\d\b",
     ["src", "providers"],
     ["src/datapath/udp", "src/host", "src/verbs"],  # fields of sockaddr and of ibv_device_attr
     "use base/byte_order.h"),
    ("default", r"\bdefault\s*:", CORE, [],
     "name every enumerator, so that -Wswitch finds the one that is missing"),
    ("using-namespace", r"\busing\s+namespace\s+std\b(?!::\w*literals)", EVERYWHERE, [],
     "name what you use"),
    ("using-namespace", r"\busing\s+namespace\b", ["*.h"], [],
     "whoever includes this would have it too"),
    ("endl", r"\bstd::endl\b", EVERYWHERE, [], r"use '\n'"),
    ("reinterpret-cast", r"\breinterpret_cast\b", ["src"],
     ["src/wire", "src/datapath", "src/verbs", "src/cma", "src/host", "src/engine"],
     "use bit_cast, or static_cast through void*"),
    ("define-private", r"#\s*define\s+private\b", ["tests", "src"], [],
     "test through the public part"),
    ("assert", r"\bassert\s*\(", ["src", "providers"], [],
     "our fault: UROCE_CHECK; anybody else's: a value"),
    ("dead-code", r"\bif\s*\(\s*(false|0)\s*\)", EVERYWHERE, [], "delete it"),
]

# In every text file. The letter in brackets keeps this file from finding itself.
TEXT = [
    ("leftover", r"\bTO[D]O\b|\bFIX[M]E\b|\bXX[X]\b", "do it, or open an issue"),
    ("machine", r"(?<![\w.])/w[o]rk/", "a path of one machine"),
    ("machine", r"\bshare[d]/(abi|checks|design|hooks|interop|cases)\b",
     "not in this repository"),
]

# (rule, path): the reason. Rules: those above, and file-size, function-size, spdx, tab,
# trailing-space, title, link.
EXCEPTIONS = {
    ("reinterpret-cast", "src/base/list.h"):
        "from a link to the object it is in",
    ("clock", "src/host/interfaces.cc"):
        "a bounded wait at start-up, before there is an engine",
    ("clock", "src/engine/worker.cc"):
        "CPU time that was used, not the time it is",
    ("clock", "src/sim/main.cc"):
        "how fast the simulator is, and for how long it goes on; inside there is virtual time only",
    ("sleep", "src/posix/wait_for_lock.h"):
        "a lock on a file cannot be waited for with a deadline",
    ("sleep", "src/host/files.cc"):
        "the same",
    ("sleep", "src/datapath/dpdk/dpdk_datapath.cc"):
        "whether a memif's peer has read its ring is not to be seen; rings go with the process",
    ("thread", "src/datapath/dpdk/eal.cc"):
        "rte_eal_init narrows the affinity of the thread it runs on, so it gets one to itself",
    ("reinterpret-cast", "src/transport/work_queue.h"):
        "slots of a run-time size in memory that the caller hands in",
    ("reinterpret-cast", "src/transport/work_request.h"):
        "what follows a work request in its slot",
}

# What holds no text of ours.
DATA = re.compile(r"\.(pcap|pcapng|bin|hex|tsv|png|svg|gz)$|^tests/data/|^tests/fuzz/(corpus|regression)/|^LICENSE$")
# No licence line: JSON has no comments, a document is read, the others are a line or two.
NO_SPDX = re.compile(r"\.(json|md|driver|map)$|^\.clang-format$|^\.gitignore$")
