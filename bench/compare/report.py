# SPDX-License-Identifier: BSD-2-Clause
"""Tables of a run, for the terminal, for docs/PERFORMANCE.md and for programs."""
import statistics

import bars


def shown(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def ratio(metric, medians):
    """ "0.81 of UCX shm: tag_bw 64 KiB": the median divided by that of what it stands beside."""
    found = [(medians[name], name) for name in metric.beside if name in medians]
    if not found or metric.name not in medians:
        return ""
    value, name = max(found)
    return f"{medians[metric.name] / value:.2f} of {name}"


def medians_of(samples):
    return {name: statistics.median(values) for name, values in samples.items() if values}


def rows(metrics, samples, skipped):
    medians = medians_of(samples)
    for metric in metrics:
        values = samples.get(metric.name)
        if not values:
            yield metric.name, "-", "", "", skipped.get(metric.name, "not measured")
            continue
        spread = f"{shown(min(values))} to {shown(max(values))}" if len(values) > 1 else ""
        yield (metric.name, shown(medians[metric.name]), metric.unit, spread,
               ratio(metric, medians))


def bar_rows(samples):
    medians = medians_of(samples)
    for bar in bars.BARS:
        verdict, value, values = bars.judge(bar, medians)
        numbers = ", ".join(shown(v) for v in values if v is not None)
        number = "" if value is None else f"{shown(value)} {bar.unit}".strip()
        yield bar.text, verdict, number, numbers


def aligned(table):
    """A text table: columns as wide as they need, numbers (the second column) to the right."""
    table = [tuple(map(str, row)) for row in table]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        cells = [cell.rjust(width) if i == 1 else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        yield "  ".join(cells).rstrip()


def marked_down(table):
    head, *body = table
    yield "| " + " | ".join(head) + " |"
    yield "| --- | ---: |" + " --- |" * (len(head) - 2)
    for row in body:
        yield "| " + " | ".join(row) + " |"


MEASURED = ("what", "median", "unit", "least to most", "ratio of the medians")
BARS = ("bar", "verdict", "value", "from")


def text(metrics, samples, skipped, facts, layout=aligned):
    lines = [f"{name}: {value}" for name, value in facts.items()]
    if layout is marked_down:
        lines = ["- " + line for line in lines]
    return "\n".join([*lines, "", *layout([MEASURED, *rows(metrics, samples, skipped)]), "",
                      *layout([BARS, *bar_rows(samples)]), ""])


def data(metrics, samples, skipped, facts):
    """The same for json.dump."""
    return {"facts": facts,
            "metrics": [{"name": m.name, "unit": m.unit, "beside": m.beside,
                         "values": samples.get(m.name, [])} for m in metrics],
            "skipped": skipped,
            "bars": [dict(zip(BARS, row)) for row in bar_rows(samples)]}


def all_metrics(all_cases):
    return [metric for case in all_cases for metric in case.metrics]
