#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fails when a file includes something that its layer may not see; the rules are in layers.txt."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = "tests/style/layers.txt"
TOPS = ("include", "src", "providers", "examples")
SUFFIXES = {".h", ".hh", ".c", ".cc"}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def load():
    """{folder: (folders it may include, patterns of system headers)}, lowest first."""
    rules = {}
    for line in (ROOT / RULES).read_text().splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        folder, _, rest = line.partition(":")
        internal, _, system = rest.partition("|")
        rules[folder] = (internal.split(), [re.compile(p) for p in system.split()])
    return rules


def layer_of(path, rules):
    return max((f for f in rules if path.startswith(f + "/")), key=len, default=None)


def target(includer, style, name):
    """The path in the repository that an include names, or None for a system header."""
    if name.startswith("uroce/"):
        return "include/" + name
    if style == "<":
        return None
    beside = (includer.parent / name).relative_to(ROOT).as_posix() if ".." not in name else ""
    for path in ("src/" + name, "providers/" + name, "providers/include/" + name, beside):
        if path and (ROOT / path).is_file():
            return path
    return "src/" + name  # not there (generated, or a mistake): judged by its name


def check_include(file, line, me, rules):
    """What is wrong with this line, or None."""
    match = INCLUDE.match(line)
    if not match:
        return None
    style, name = match.groups()
    internal, system = rules[me]
    path = target(file, style, name)
    if path is None:
        if any(p.fullmatch(name) for p in system):
            return None
        return f"{me} may not include <{name}>; if it must, say so in {RULES}"
    if layer_of(path, rules) in [me, *internal]:
        return None
    return f"{me} may not include {path}; move the code, or the rule in {RULES}"


def problems(rules):
    lower = []
    for folder, (internal, _) in rules.items():
        for name in internal:
            if name not in lower:
                yield f"{RULES}: {folder} names {name}, which does not stand above it"
        lower.append(folder)
    for top in TOPS:
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            relative = file.relative_to(ROOT).as_posix()
            me = layer_of(relative, rules)
            if me is None:
                yield f"{relative}:1: is in no layer; add its folder to {RULES}"
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                wrong = check_include(file, line, me, rules)
                if wrong:
                    yield f"{relative}:{number}: {wrong}"


if __name__ == "__main__":
    found = list(problems(load()))
    print("\n".join(found))
    sys.exit(bool(found))
