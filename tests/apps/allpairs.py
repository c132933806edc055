# SPDX-License-Identifier: BSD-2-Clause
"""Few rows that contain every pair of values of any two factors that may stand together.

Greedy: a row starts from the first pair that is still missing and takes, factor by factor, the
value that covers most missing pairs. Deterministic; ties go to the value that is named first.
"""
import itertools


def pairs_of(row):
    return set(itertools.combinations(sorted(row.items()), 2))


def all_pairs(factors, is_possible):
    """`factors` is {name: values}; `is_possible` judges rows, incomplete ones too (a factor that is
    not in the row yet must not make it impossible)."""
    missing = {}  # a dict keeps the order
    for left, right in itertools.combinations(sorted(factors), 2):
        for values in itertools.product(factors[left], factors[right]):
            if is_possible(dict(zip((left, right), values))):
                missing[(left, values[0]), (right, values[1])] = True
    rows = []
    while missing:
        first = next(iter(missing))
        row = complete(dict(first), factors, is_possible, missing)
        del missing[first]  # also when nothing completes it: then it is not possible after all
        if row is None:
            continue
        for pair in pairs_of(row):
            missing.pop(pair, None)
        rows.append({name: row[name] for name in factors})
    return rows


def complete(row, factors, is_possible, missing):
    """`row` with a value for every factor, None where no choice of values is possible."""
    name = next((name for name in factors if name not in row), None)
    if name is None:
        return row

    def gain(value):
        return -sum(tuple(sorted([(name, value), other])) in missing for other in row.items())

    for value in sorted(factors[name], key=gain):
        longer = {**row, name: value}
        if is_possible(longer):
            result = complete(longer, factors, is_possible, missing)
            if result is not None:
                return result
    return None
