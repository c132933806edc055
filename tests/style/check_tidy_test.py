#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The checks find what they are for, and leave alone what they should: one row each."""
import unittest

import check_layers
import check_tidy

SPDX = "// SPDX-License-Identifier: BSD-2-Clause\n"


def code_rules(text, name="src/wire/x.cc"):
    return [(rule, line) for rule, line, _ in check_tidy.check_code(name, text)]


def text_rules(text, name="src/wire/x.cc"):
    return [(rule, line) for rule, line, _ in check_tidy.check_text(name, text)]


def function_of(lines):
    return "int f(int a,\n      int b) {\n" + "  a += b;\n" * lines + "}\n" + "\n" * 20


class Code(unittest.TestCase):
    def test_bans_words_in_code_only(self):
        self.assertEqual(code_rules("int a;\nauto t = Clock::now();\n"), [("clock", 2)])
        self.assertEqual(code_rules("// Clock::now()\n/* rand() */ auto s = \"rand()\";\n"), [])
        self.assertEqual(code_rules("auto x = R\"(rand())\"; // 'rand()\nint brand();\n"), [])

    def test_bans_by_folder(self):
        self.assertEqual(code_rules("auto t = C::now();", "src/engine/clock.cc"), [])
        self.assertEqual(code_rules("auto t = C::now();", "src/engine/clocks.cc"), [("clock", 1)])
        self.assertEqual(code_rules("auto t = C::now();", "tests/unit/x.cc"), [])
        self.assertEqual(code_rules("sleep(1);", "tests/unit/x.cc"), [("sleep", 1)])

    def test_bans_by_suffix(self):
        self.assertEqual(code_rules("using namespace a;", "src/wire/x.h"), [("using-namespace", 1)])
        self.assertEqual(code_rules("using namespace a;", "tests/x.cc"), [])
        self.assertEqual(code_rules("using namespace std;"), [("using-namespace", 1)])

    def test_placement_new_is_no_allocation(self):
        self.assertEqual(code_rules("new (place) T; void* operator new(size_t);"), [])
        self.assertEqual(code_rules("auto* p = new T;"), [("heap", 1)])

    def test_measures_functions(self):
        self.assertEqual(code_rules(function_of(70)), [])
        self.assertEqual(code_rules(function_of(71)), [("function-size", 2)])
        inside = "namespace a {\nclass B {\n" + function_of(71) + "};\n}\n"
        self.assertEqual(code_rules(inside), [("function-size", 4)])

    def test_a_class_or_a_table_is_no_function(self):
        body = "  int a();\n" * 100
        self.assertEqual(code_rules("class B : public C<int> {\n" + body + "};\n"), [])
        rows = "    Row{1, 2},\n" * 100
        self.assertEqual(code_rules("constexpr Row kRows[] = {\n" + rows + "};\n"), [])


class Text(unittest.TestCase):
    def test_wants_a_licence_line(self):
        self.assertEqual(text_rules("int a;\n"), [("spdx", 1)])
        self.assertEqual(text_rules("#!/bin/sh\n# SPDX-License-Identifier: BSD-2-Clause\n"), [])
        self.assertEqual(text_rules("{}\n", "a.json"), [])

    def test_finds_spaces_tabs_and_a_missing_newline(self):
        self.assertEqual(text_rules(SPDX + "a \n"), [("trailing-space", 2)])
        self.assertEqual(text_rules(SPDX + "a\tb\n"), [("tab", 2)])
        self.assertEqual(text_rules(SPDX + "a"), [("trailing-space", 2)])

    def test_finds_leftovers(self):
        self.assertEqual(text_rules(SPDX + "// TO" + "DO: later\n"), [("leftover", 2)])

    def test_measures_files(self):
        self.assertEqual(text_rules(SPDX + "a\n" * 600), [("file-size", 601)])


class Documents(unittest.TestCase):
    def rules(self, text):
        return [(rule, line) for rule, line, _ in check_tidy.check_document("README.md", text)]

    def test_one_title(self):
        self.assertEqual(self.rules("# A\n```\n# shell\n```\n"), [])
        self.assertEqual(self.rules("# A\n# B\n"), [("title", 2)])
        self.assertEqual(self.rules("text\n"), [("title", 1)])

    def test_links_lead_somewhere(self):
        self.assertEqual(self.rules("# A\n[x](LICENSE) [y](https://a.b) [z](#a) `[q](r)`\n"), [])
        self.assertEqual(self.rules("# A\n[x](nowhere.md)\n"), [("link", 2)])
        self.assertEqual(self.rules("# A\n[x](#b)\n"), [("link", 2)])


class Layers(unittest.TestCase):
    def wrong(self, layer, line):
        file = check_layers.ROOT / layer / "x.cc"
        return check_layers.check_include(file, line, layer, check_layers.load())

    def test_knows_up_from_down(self):
        self.assertIsNone(self.wrong("src/wire", '#include "base/psn.h"'))
        self.assertIsNotNone(self.wrong("src/base", '#include "wire/parse.h"'))
        self.assertIsNotNone(self.wrong("src/wire", '#include "memory/sge.h"'))
        self.assertIsNotNone(self.wrong("src/datapath", '#include "host/config.h"'))

    def test_knows_system_headers(self):
        self.assertIsNone(self.wrong("src/wire", "#include <span>"))
        self.assertIsNotNone(self.wrong("src/wire", "#include <vector>"))
        self.assertIsNotNone(self.wrong("src/datapath", "#include <rte_mbuf.h>"))
        self.assertIsNone(self.wrong("src/datapath/dpdk", "#include <rte_mbuf.h>"))


if __name__ == "__main__":
    unittest.main(verbosity=0)
