"""Prints the change points of Apache Otava for random series, a JSON document for each.

    change_points.py SEED COUNT

The series have levels that change in steps, of noise that is normal, heavy-tailed or rounded, and lengths up to 160. The first ones are
short ones with one step, and one without noise.
"""

import json
import sys

import numpy as np
from otava.analysis import compute_change_points

OWN = [
    [1.02, 0.95, 0.99, 1.00, 1.12, 0.90, 0.50, 0.51, 0.48, 0.48, 0.55],
    [1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96, 0.50, 0.51, 0.48, 0.48, 0.55, 0.50, 0.49, 0.51, 0.50, 0.49],
    [100.0] * 20,
]


def series(rng):
    values = []
    level, noise = rng.uniform(1, 1000), rng.choice([0.002, 0.01, 0.05])
    for _ in range(rng.integers(1, 6)):
        size = rng.integers(1, 32)
        kind = rng.choice(3)
        draw = rng.standard_t(2, size) if kind == 1 else rng.normal(0, 1, size)
        part = level * (1 + noise * draw)
        values += list(np.round(part, 2) if kind == 2 else part)
        level *= rng.choice([0.9, 0.97, 1.0, 1.03, 1.3])
    return [float(value) for value in values]


def main():
    rng, count = np.random.default_rng(int(sys.argv[1])), int(sys.argv[2])
    for values in OWN + [series(rng) for _ in range(count)]:
        points, _ = compute_change_points(list(values))
        found = [[int(p.index), float(p.stats.mean_1), float(p.stats.mean_2), float(p.stats.pvalue)] for p in points]
        print(json.dumps({"series": values, "points": found}))


main()
