#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fails where docs/CONFORMANCE.md names a test that is not there, or a row is out of order or says
neither a test nor what it waits for."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "CONFORMANCE.md"
ROW = re.compile(r"^\| P(\d+) \| (.*) \| (.*?) ?\|$")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def tests_in_the_tree():
    text = "\n".join(p.read_text() for p in sorted((ROOT / "tests").rglob("*_test.cc")))
    return {f"{suite}.{name}" for suite, name in TEST.findall(text)}


def problems():
    there = tests_in_the_tree()
    last = 0
    for line_number, line in enumerate(DOCUMENT.read_text().splitlines(), 1):
        place = f"docs/CONFORMANCE.md:{line_number}"
        if line.startswith("| P") and not ROW.match(line):
            yield f"{place}: a row is | Pnn | what is right | tests |"
        row = ROW.match(line)
        if not row:
            continue
        number, text, tests = int(row[1]), row[2], row[3]
        if number <= last:
            yield f"{place}: P{number:02} stands behind P{last:02}"
        last = number
        named = re.findall(r"`([\w.]+)`", tests)
        for name in named:
            if name not in there:
                yield f"{place}: there is no test {name}"
        if not named and not re.search(r"\bwith [\w ]+$", text):
            yield f"{place}: P{number:02} has no test, and does not say what it waits for"
    if last == 0:
        yield f"{DOCUMENT}:1: no rows found"


if __name__ == "__main__":
    output = list(problems())
    print("\n".join(output))
    sys.exit(bool(output))
