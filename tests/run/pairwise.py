"""pairwise.py - covering arrays: few rows in which each two values of two factors meet."""

import itertools
import random


def pairs_of(row):
    return {frozenset(two) for two in itertools.combinations(row.items(), 2)}


def rows(factors, seed=1, must=None):
    """Yield rows {factor: value} until each pair of values was in one.
    factors: {name: values}
    must: a factor; yield one row for each of its values, whatever pairs they leave out.
    """
    rnd = random.Random(seed)
    missing = {
        frozenset(((a, x), (b, y)))
        for a, b in itertools.combinations(factors, 2)
        for x in factors[a]
        for y in factors[b]
    }
    firsts = list(factors[must]) if must else itertools.repeat(None)
    for first in firsts:
        if not missing and not must:
            return
        row = {must: first} if must else dict(rnd.choice(sorted(missing, key=sorted)))
        for name in rnd.sample(list(factors), len(factors)):
            if name in row:
                continue
            row[name] = max(
                rnd.sample(list(factors[name]), len(factors[name])),
                key=lambda v: sum(
                    frozenset(((name, v), one)) in missing for one in row.items()
                ),
            )
        missing -= pairs_of(row)
        yield row


def count(factors):
    """How many pairs there are."""
    sizes = [len(values) for values in factors.values()]
    return sum(a * b for a, b in itertools.combinations(sizes, 2))
