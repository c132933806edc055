#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fails with file:line where the tree breaks a rule of docs/STYLE.md that a program can check.

Looks at every file that git tracks or would track; the rules and exceptions are in tidy_rules.py.
"""
import pathlib
import re
import subprocess
import sys

import tidy_rules as rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE_SUFFIXES = (".h", ".cc", ".c")
SIZED_SUFFIXES = CODE_SUFFIXES + (".py", ".sh", ".cmake")

# Comments, string and character literals (raw strings first): blanked, newlines kept.
NOT_CODE = re.compile(
    r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'', re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
BRACES = re.compile(r"[{};]")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$")
CONTROL = re.compile(r"^\s*(if|for|while|switch|do|else|try|catch|return)\b")


def listed_files():
    try:
        out = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True).stdout
        names = sorted({n.decode() for n in out.split(b"\0") if n})
    except (OSError, subprocess.CalledProcessError):  # an unpacked release
        names = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*")
                       if not p.relative_to(ROOT).as_posix().startswith(("build", ".git/")))
    return [n for n in names if (ROOT / n).is_file() and not (ROOT / n).is_symlink()]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def within(name, folders):
    return any(name.endswith(f[1:]) if f[0] == "*" else name.startswith((f + "/", f + "."))
               or name == f for f in folders)


def functions(code):
    """(line, lines of the body) of every function; `code` has neither comments nor literals."""
    code = PREPROCESSOR.sub(blank, code)
    stack, head_start = [], 0
    for token in BRACES.finditer(code):
        at = token.start()
        if token[0] == "{":
            head = code[head_start:at]
            in_scope = all(kind == "scope" for kind, _ in stack)
            if SCOPE.search(head) and "(" not in head:
                kind = "scope"
            elif in_scope and "(" in head and not CONTROL.match(head) and "= " not in head:
                kind = "function"
            else:
                kind = "block"
            stack.append((kind, at))
        elif token[0] == "}" and stack:
            kind, opened = stack.pop()
            if kind == "function":
                yield line_of(code, opened), code.count("\n", opened, at) - 1
        head_start = at + 1


def check_code(name, text):
    code = NOT_CODE.sub(blank, text)
    for rule, pattern, folders, but_not, instead in rules.CODE:
        if within(name, folders) and not within(name, but_not):
            for match in re.finditer(pattern, code):
                found = " ".join(match[0].split())
                yield rule, line_of(code, match.start()), f"`{found}`: {instead}"
    if text.count("\n") > 20:
        for line, length in functions(code):
            if length > rules.FUNCTION_LINES:
                yield ("function-size", line,
                       f"{length} lines in one function, {rules.FUNCTION_LINES} at most: split it")


def check_text(name, text):
    lines = text.count("\n")
    if name.endswith(SIZED_SUFFIXES) and lines > rules.FILE_LINES:
        yield "file-size", lines, f"{lines} lines, {rules.FILE_LINES} at most: one idea per file"
    if not rules.NO_SPDX.search(name):
        head = "\n".join(text.split("\n", 3)[:3])
        if "SPDX-License-Identifier: BSD-2-Clause" not in head:
            yield "spdx", 1, "begin with `SPDX-License-Identifier: BSD-2-Clause` in a comment"
    for match in re.finditer(r"[ \t]+$", text, re.M):
        yield "trailing-space", line_of(text, match.start()), "take off the space at the end"
    for match in re.finditer(r"\t", text):
        yield "tab", line_of(text, match.start()), "use spaces"
    if text and not text.endswith("\n"):
        yield "trailing-space", lines + 1, "end the file with a newline"
    for rule, pattern, instead in rules.TEXT:
        for match in re.finditer(pattern, text):
            yield rule, line_of(text, match.start()), f"`{match[0]}`: {instead}"


def headings(text):
    """(line, level, title) outside of code blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        match = None if fenced else re.match(r"(#+) (.*)", line)
        if match:
            yield number, len(match[1]), match[2]


def anchors(text):
    slugs = (re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
             for _, _, title in headings(text))
    return set(slugs)


def check_document(name, text):
    titles = [number for number, level, _ in headings(text) if level == 1]
    if len(titles) != 1:
        yield "title", (titles + [1, 1])[1], f"{len(titles)} titles (`# ...`): a document has one"
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", blank, text, flags=re.S | re.M)
    for match in re.finditer(r"\]\(([^)\s]+)\)", prose):
        link = match[1]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        line = line_of(prose, match.start())
        if not target.exists():
            yield "link", line, f"{link} does not exist"
        elif anchor and anchor not in anchors(target.read_text() if path else text):
            yield "link", line, f"{path or name} has no heading #{anchor}"


def problems():
    used = set()
    for name in listed_files():
        if rules.DATA.search(name):
            continue
        try:
            text = (ROOT / name).read_text()
        except UnicodeDecodeError:
            yield f"{name}:1: is not UTF-8 text; if it is data, say so in tests/style/tidy_rules.py"
            continue
        found = list(check_text(name, text))
        if name.endswith(CODE_SUFFIXES):
            found += check_code(name, text)
        if name.endswith(".md"):
            found += check_document(name, text)
        for rule, line, message in found:
            if (rule, name) in rules.EXCEPTIONS:
                used.add((rule, name))
            else:
                yield f"{name}:{line}: {message} [{rule}]"
    for rule, name in sorted(set(rules.EXCEPTIONS) - used):
        yield f"tests/style/tidy_rules.py:1: the exception ({rule}, {name}) is not needed: delete it"


if __name__ == "__main__":
    output = list(problems())
    print("\n".join(output))
    sys.exit(bool(output))
