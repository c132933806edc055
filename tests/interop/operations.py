#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every operation between uroce and Linux's rxe with all data compared (verbs_peer), each side as
requester and as responder: sizes from 0 bytes to 8 MiB, both IP families, path MTU 1024 and 4096."""
import interop_checks
from interop_checks import both_ways
from sides import run_pair

SIZES = [0, 1, 2, 3, 4, 5, 255, 1023, 1024, 1025, 4095, 4096, 4097, 10001, 65536, 1048579, 8388608]
OPERATIONS = ["send", "send_imm", "write", "write_imm", "read"]
SHORT = "send_inline:64 write_inline:1 send_inline:0 add swap compare add"
PIECES = "send_sge:3 send_sge:4099 write_sge:10 write_sge:9001 read_sge:7 read_sge:5003"
WINDOWS = "window_write:5000 window_write_imm:64 send_invalidate:0 window_write:1 send_invalidate:3000"


def of_sizes(names, sizes):
    return " ".join(f"{name}:{size}" for size in sizes for name in names)


def run_both(server, client, requests, family=4, options=""):
    """The outputs, when everything was as it should be."""
    def words(side):
        tool = [getattr(side, "tool", "verbs_peer"), "-d", side.device, "-x", side.gids[family]]
        return [*tool, *options.split(), "-o", requests] if side is client else tool
    return run_pair(server, client, words)


def run_tool(*arguments, **more):
    """The client's output."""
    return run_both(*arguments, **more)[1].strip()


def path_of(mtu, *sides):
    """The option, where both can."""
    return f"-m {min(mtu, *(side.path_mtu for side in sides))}"


def reliable(server, client, family, mtu):
    """All operations of all sizes; the longest once for each."""
    requests = " ".join([of_sizes(OPERATIONS, SIZES[:-1]), of_sizes(["send", "write", "read"], SIZES[-1:]),
                         SHORT, PIECES, "late_send:5000 late_write_imm:1"])
    return run_tool(server, client, requests, family, path_of(mtu, server, client))


def windows(server, client, family):
    return run_tool(server, client, WINDOWS, family)


def shared_receives(server, client, family, mtu):
    return run_tool(server, client, of_sizes(["send", "send_imm", "write_imm"], [0, 1, 1024, 5000]) +
                    " late_send:100", family, f"-s -q 8 {path_of(mtu, server, client)}")


def many_qps(server, client, family, mtu):
    return run_tool(server, client, of_sizes(OPERATIONS, [1, 4097, 20000]) + " add swap late_send:900",
                    family, f"-q 64 {path_of(mtu, server, client)}")


def unreliable(server, client, family, mtu):
    return run_tool(server, client, of_sizes(OPERATIONS[:4], [0, 1, 1023, 4096, 4097, 20000]) +
                    " send_sge:5000 write_inline:7", family, f"-c UC {path_of(mtu, server, client)}")


def datagrams(server, client, family):
    sizes = [size for size in (0, 1, 2, 3, 1024, 4093, 4096)
             if size <= min(server.path_mtu, client.path_mtu)]
    return run_tool(server, client, of_sizes(["send", "send_imm"], sizes) +
                    " send_inline:5 send_sge:1000", family, "-c UD -q 4")


def make_checks(_):
    """Both path MTUs and both families meet; not each with each."""
    return [check for rows in (
        both_ways(reliable, 4, 1024), both_ways(reliable, 6, 4096), both_ways(windows, 4),
        both_ways(shared_receives, 6, 1024), both_ways(many_qps, 4, 4096),
        both_ways(unreliable, 4, 1024), both_ways(unreliable, 6, 4096), both_ways(datagrams, 4),
        both_ways(datagrams, 6)) for check in rows]


if __name__ == "__main__":
    interop_checks.main(interop_checks.parser_for(__doc__), make_checks)
