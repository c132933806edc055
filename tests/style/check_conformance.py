#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fails where the last cell of a row in docs/CONFORMANCE.md names a test that is not there, or a row of
the collected faults is out of order or says neither a test nor what it waits for."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "CONFORMANCE.md"
ROW = re.compile(r"^\| P(\d+) \| (.*) \| (.*?) ?\|$")
# Instance/Suite.Name, or a script.
NAMED = re.compile(r"`((?:\w+/)?[A-Z]\w*\.[A-Z]\w*|tests/[\w/]+\.py)`")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def tests_in_the_tree():
    text = "\n".join(p.read_text() for p in sorted((ROOT / "tests").rglob("*_test.cc")))
    return {f"{suite}.{name}" for suite, name in TEST.findall(text)}


def is_there(name, tests):
    return (ROOT / name).exists() if name.endswith(".py") else name.split("/")[-1] in tests


def problems():
    there = tests_in_the_tree()
    last = 0
    for line_number, line in enumerate(DOCUMENT.read_text().splitlines(), 1):
        place = f"docs/CONFORMANCE.md:{line_number}"
        if not line.startswith("| "):
            continue
        named = NAMED.findall(line.split(" | ")[-1])
        for name in named:
            if not is_there(name, there):
                yield f"{place}: there is no test {name}"
        row = ROW.match(line)
        if line.startswith("| P") and not row:
            yield f"{place}: a row is | Pnn | what is right | tests |"
        if not row:
            continue
        number = int(row[1])
        if number <= last:
            yield f"{place}: P{number:02} stands behind P{last:02}"
        last = number
        if not named and not re.search(r"\bwith [\w ]+$", row[2]):
            yield f"{place}: P{number:02} has no test, and does not say what it waits for"
    if last == 0:
        yield f"{DOCUMENT}:1: no rows found"


if __name__ == "__main__":
    output = list(problems())
    print("\n".join(output))
    sys.exit(bool(output))
