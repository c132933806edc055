# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of this folder share: their arguments, guest and sides, a line for each check."""
import argparse
import os
import subprocess
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "apps"))  # for its helpers
# pylint: disable=wrong-import-position
import image
import sides
from checks import run_checks
from environment import apart_from_the_user, skip
from guest import guests, skip_without_means
from programs import Failure

BUILD = "build/release/tests/interop"


def both_ways(function, *arguments):
    """`function(server, client, *arguments)` as two checks, for each side has the server once."""
    def check_of(server, client):
        def check(*pair):
            by_name = {side.name: side for side in pair}
            return function(by_name[server], by_name[client], *arguments)
        words = [function.__name__.removeprefix("check_"), *map(str, arguments), "client", client]
        check.__name__ = "_".join(words)
        return check
    return [check_of("rxe", "uroce"), check_of("uroce", "rxe")]


def chosen(checks, options):
    """Of pairs made by both_ways one each, the first of one and the second of the next; or all."""
    return checks if options.all else [check for number, check in enumerate(checks)
                                       if number % 4 in (0, 3)]


def parser_for(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--uroce", default="build/release/uroce", type=os.path.abspath)
    parser.add_argument("--tool", default=f"{BUILD}/verbs_peer", type=os.path.abspath)
    parser.add_argument("--agent", default=f"{BUILD}/guest_agent", type=os.path.abspath)
    parser.add_argument("--cache", default=f"{BUILD}/image", type=os.path.abspath)
    parser.add_argument("--only", default="", help="checks whose name contains this")
    parser.add_argument("--all", action="store_true", help="both ways round, and rarer cases")
    parser.add_argument("uplink", nargs="?", default="udp", choices=sides.UPLINKS)
    return parser


def uroce_side(network, options):
    """Not every kernel has what the rarer ports of DPDK's need."""
    try:
        sides.prepare(network, options.uplink)
    except (Failure, subprocess.SubprocessError) as failure:
        skip(f"interop: {options.uplink} does not come up: {' '.join(str(failure).split())}")
    uroce = sides.UroceSide(network, options.uroce, options.uplink)
    uroce.tool = options.tool
    return uroce


def main(parser, make_checks):
    """Runs make_checks(options), each check(uroce, rxe), with one guest."""
    options = parser.parse_args()
    skip_without_means()
    apart_from_the_user()
    try:
        image.make(options.cache, options.agent)
    except image.NoKernel as reason:
        skip(f"interop: {reason}")
    with guests(options, mtu=sides.UPLINKS[options.uplink].mtu) as (network, (guest,)):
        uroce = uroce_side(network, options)
        passed = run_checks(make_checks(options), options, uroce, sides.RxeSide(guest))
    sys.exit(0 if passed else 1)


def expect(condition, what):
    if not condition:
        raise Failure(what)
