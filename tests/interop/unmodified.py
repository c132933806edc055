#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""perftest and libibverbs' pingpongs between uroce and Linux's rxe, each side as client and server."""
import interop_checks
from interop_checks import both_ways, chosen, expect
from sides import run_pair

IPV4, IPV6 = 4, 6
# (program and options, IP family, path MTU, 0 where it is not to be chosen)
PERFTEST = [
    ("ib_send_bw -s 1000003 -n 10", IPV4, 4096),
    ("ib_write_bw -s 8388608 -n 5", IPV6, 4096),
    ("ib_read_bw -s 1000003 -n 10", IPV4, 1024),
    ("ib_send_bw -s 5000 -n 200 -b", IPV6, 4096),
    ("ib_send_bw -s 5000 -n 100 -e", IPV4, 1024),
    ("ib_send_bw -s 5000 -n 100 -q 8 --use-srq", IPV4, 4096),
    ("ib_send_lat -I 64 -s 64 -n 200", IPV4, 1024),
    ("ib_write_lat -I 64 -s 64 -n 200", IPV6, 1024),
    ("ib_read_lat -s 4000 -n 200", IPV6, 4096),
    ("ib_atomic_bw -A FETCH_AND_ADD -n 200", IPV4, 1024),
    ("ib_atomic_bw -A CMP_AND_SWAP -n 200", IPV6, 1024),
    ("ib_atomic_lat -A FETCH_AND_ADD -n 100", IPV6, 4096),
    ("ib_send_bw -c UC -s 5000 -n 20", IPV4, 1024),
    ("ib_write_bw -c UC -s 5000 -n 20", IPV6, 4096),
    ("ib_send_lat -c UC -s 2000 -n 100", IPV6, 1024),
    ("ib_send_bw -c UD -s 1000 -n 50", IPV6, 0),
    ("ib_send_lat -c UD -s 4096 -n 100", IPV4, 0),
    ("ib_write_bw -q 64 -s 4096 -n 20 -u 18", IPV4, 4096),
    ("ib_send_bw -q 64 -s 4096 -n 20 -u 18", IPV6, 1024),
    ("ib_read_bw -q 64 -s 4096 -n 20 -u 18", IPV4, 1024),
]
# With --all.
LONG = [(f"{tool} -a -n 5", family, mtu) for tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw")
        for family in (IPV4, IPV6) for mtu in (1024, 4096)]
PINGPONG = [
    ("ibv_rc_pingpong -c -s 1 -n 50", IPV4, 1024),
    ("ibv_rc_pingpong -c -s 4097 -n 50 -e", IPV6, 1024),
    ("ibv_rc_pingpong -c -s 1048577 -n 5", IPV4, 4096),
    ("ibv_rc_pingpong -c -s 8388608 -n 3", IPV6, 4096),
    ("ibv_uc_pingpong -c -s 4097 -n 50", IPV4, 1024),
    ("ibv_ud_pingpong -c -s 4096 -n 50", IPV6, 0),
    ("ibv_ud_pingpong -c -s 1 -n 50 -e", IPV4, 0),
    ("ibv_srq_pingpong -c -s 4097 -n 100", IPV4, 1024),
    ("ibv_srq_pingpong -c -s 5000 -n 100 -e", IPV6, 4096),
]


def words_of(text, family, mtu, gid_option, *more):
    """The command of a side, as sides.run_pair wants it."""
    path = ["-m", str(mtu)] if mtu else []

    def words(side):
        return [*text.split(), "-d", side.device, gid_option, side.gids[family], *path, *more]
    return words


def perftest(server, client, text, family, mtu):
    texts = run_pair(server, client, words_of(text, family, mtu, "-x", "-F"))
    rows = [row.split() for row in texts[1].splitlines() if row[:1] == " " and row.split()]
    sizes = sum(row[0].isdigit() and len(row) >= 4 for row in rows)
    expect(sizes >= (23 if " -a" in text else 1), f"not the table that was expected:\n{texts[1]}")


def pingpong(server, client, text, family, mtu):
    for output in run_pair(server, client, words_of(text, family, mtu, "-g")):
        expect("iters in" in output and "invalid data" not in output, output)


def make_checks(options):
    long = LONG if options.all else []
    return chosen([check for function, cases in ((pingpong, PINGPONG), (perftest, PERFTEST + long))
                   for case in cases for check in both_ways(function, *case)], options)


if __name__ == "__main__":
    interop_checks.main(interop_checks.parser_for(__doc__), make_checks)
