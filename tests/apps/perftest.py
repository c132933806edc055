# SPDX-License-Identifier: BSD-2-Clause
"""perftest's programs, every combination of options, and which ones its own parser refuses.

A case is a row of FACTORS. Where a program refuses a combination, REFUSALS says with which words;
tests hold the programs to it, so that a failure is never taken for a refusal.
"""
TOOLS = [f"ib_{operation}_{kind}" for kind in ("bw", "lat")
         for operation in ("write", "read", "send", "atomic")]
FACTORS = {
    "tool": TOOLS,
    "-c": ["", "UC", "UD", "XRC"],
    "-m": ["", "256", "512", "1024", "2048", "4096"],
    "-I": ["", "64"],
    "-A": ["", "CMP_AND_SWAP", "FETCH_AND_ADD"],
    "-a": [False, True],
    "-e": [False, True],
    "-b": [False, True],
    "-q": ["", "16"],
    "-D": [False, True],
}


def is_atomic(case):
    return case["tool"].startswith("ib_atomic")


# (when, what it prints); the first that matches a case is what its program says.
REFUSALS = [
    (lambda c: c.get("-c") == "UD" and "tool" in c and not c["tool"].startswith("ib_send"),
     "UD connection only possible in SEND verb"),
    (lambda c: c.get("-c") == "UC" and "tool" in c and
     c["tool"].startswith(("ib_read", "ib_atomic")),
     "UC connection not possible in READ/ATOMIC verbs"),
    (lambda c: c.get("-A") and "tool" in c and not is_atomic(c),
     "You are not running the atomic_lat/bw test!"),
    (lambda c: c.get("-b") and c.get("tool", "").endswith("lat"),
     "Bidirectional is only available in BW test"),
    (lambda c: c.get("-q") and c.get("tool", "").endswith("lat"),
     "Multiple QPs only available on bw tests"),
    (lambda c: c.get("-I") and c.get("tool", "").split("_")[1:2] in (["read"], ["atomic"]),
     "Inline feature not available on READ/Atomic verbs"),
    (lambda c: c.get("-e") and c.get("tool", "").startswith("ib_write"),
     "Events feature not available on WRITE verb"),
    (lambda c: c.get("-a") and "tool" in c and is_atomic(c),
     "Message size cannot be changed for Atomic tests"),
    (lambda c: c.get("-a") and c.get("-D"),
     "Duration mode currently doesn't support running on all sizes."),
    (lambda c: c.get("-e") and c.get("-D"), "Duration mode doesn't work with events."),
]


def refusals(case):
    """What the program may say to refuse the case; empty when it takes it. It depends on the
    program's version which of several reasons it gives."""
    return [text for applies, text in REFUSALS if applies(case)]


def hangs_by_itself(case):
    """Where perftest 4.5 sleeps with completions still in its queue, on any device: after an event
    it takes only so many of them as one QP could have, then waits for the next event
    (linux-rdma/perftest#137)."""
    return (case.get("tool") == "ib_send_bw" and bool(case.get("-b") and case.get("-e")) and
            bool(case.get("-q")))


def would_wait_for_what_is_lost(case):
    """More in flight than a receiver holds, unacknowledged, and a program that counts messages."""
    if case.get("-c") == "UC" and case.get("-a"):
        return True  # one message of 8 MiB is enough
    if case.get("-c") in (None, "", "XRC") or case.get("-D", True) or case.get("tool", "lat").endswith("lat"):
        return False
    return case["-c"] == "UC" or bool(case.get("-b") or case.get("-q"))


def command(case, gid_index, duration_seconds, iterations):
    words = [case["tool"], "-x", str(gid_index), "-F"]
    for flag in ("-a", "-e", "-b"):
        if case[flag]:
            words.append(flag)
    for option in ("-c", "-m", "-I", "-A", "-q"):
        if case[option]:
            words += [option, case[option]]
    if case["-D"]:
        return [*words, "-D", str(duration_seconds)]
    # Of 8 MiB messages on 16 QPs few are enough; five is the least that the programs take.
    return [*words, "-n", str(5 if case["-a"] else iterations)]


def is_expected_output(case, text):
    """The table has a line of numbers for each size that was asked for."""
    rows = [line.split() for line in text.splitlines() if line[:1] == " " and line.split()]
    sizes = [row[0] for row in rows if row[0].isdigit() and len(row) >= 4]
    if not case["-a"]:
        return len(sizes) == 1
    # Up to 8 MiB; of datagrams to the MTU, of which there is one at the least.
    return len(sizes) >= (7 if case["-c"] == "UD" else 23)


def label(case):
    options = [f"{name} {value}".removesuffix(" True") for name, value in case.items()
               if name.startswith("-") and value]
    return " ".join([case["tool"], *options])
