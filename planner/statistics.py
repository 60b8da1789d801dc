"""Small exact statistics: the binomial tail, samples needed, effective sample size, t quantiles. No dependency."""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95


def binomial_at_most(k: int, n: int, p: float) -> float:
    """P(X <= k) for X ~ Binomial(n, p), summed exactly in log space."""
    if k < 0:
        return 0.0
    if k >= n or p <= 0.0:
        return 1.0
    if p >= 1.0:
        return 0.0
    log_p, log_q = math.log(p), math.log1p(-p)
    log_n = math.lgamma(n + 1)
    total = math.fsum(
        math.exp(log_n - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p + (n - i) * log_q)
        for i in range(k + 1)
    )
    return min(1.0, total)


def binomial_at_least(k: int, n: int, p: float) -> float:
    """P(X >= k) for X ~ Binomial(n, p)."""
    return 1.0 if k <= 0 else 1.0 - binomial_at_most(k - 1, n, p)


def samples_needed(allowed_share: float, beyond: int = 0, confidence: float = CONFIDENCE) -> int:
    """Smallest n for which `beyond` exceedances still prove that the true share is within `allowed_share`.

    The early-stopping rule of MLPerf (mlcommons/endpoints docs/early_stopping.md): with 0 exceedances at 99 %,
    p90 needs 44, p95 90, p99 459.
    """
    low, high = beyond + 1, beyond + 2
    while binomial_at_most(beyond, high, allowed_share) > 1.0 - confidence:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if binomial_at_most(beyond, middle, allowed_share) <= 1.0 - confidence:
            high = middle
        else:
            low = middle + 1
    return low


def share_interval(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval for a share, by bisection on the exact tails."""
    if n == 0:
        return 0.0, 1.0
    tail = (1.0 - confidence) / 2

    def solve(increasing_tail: bool) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            tail_here = binomial_at_least(k, n, middle) if increasing_tail else binomial_at_most(k, n, middle)
            go_up = tail_here < tail if increasing_tail else tail_here > tail
            low, high = (middle, high) if go_up else (low, middle)
        return (low + high) / 2

    return (0.0 if k == 0 else solve(True)), (1.0 if k == n else solve(False))


def mcnemar_exact(only_left: int, only_right: int) -> float:
    """Two-sided p-value that pairs which differ fall on both sides alike: the exact binomial form of McNemar's test.

    Twice the smaller tail of Binomial(only_left + only_right, 1/2), at most 1 (McNemar 1947, Psychometrika 12).
    """
    return min(1.0, 2 * binomial_at_most(min(only_left, only_right), only_left + only_right, 0.5))


def effective_n(values: Sequence[float], blocks: Sequence[int]) -> float:
    """Number of independent samples that `values` are worth when samples of one block move together.

    Kish's design effect 1 + (m - 1) x rho, with rho the intraclass correlation by one-way analysis of
    variance, taken one standard error high so that correlation is not missed in few blocks
    (Kish 1965, Survey Sampling, ch. 5; standard error by Fisher 1925).
    """
    groups: dict[int, list[float]] = {}
    for value, block in zip(values, blocks, strict=True):
        groups.setdefault(block, []).append(value)
    n, k = len(values), len(groups)
    if n == 0 or k == n:
        return float(n)
    if k < 2:
        return 1.0
    grand = math.fsum(values) / n
    means = {b: math.fsum(g) / len(g) for b, g in groups.items()}
    between = math.fsum(len(g) * (means[b] - grand) ** 2 for b, g in groups.items()) / (k - 1)
    within = math.fsum((v - means[b]) ** 2 for b, g in groups.items() for v in g) / (n - k)
    m = (n - sum(len(g) ** 2 for g in groups.values()) / n) / (k - 1)
    if between == 0.0 and within == 0.0:
        return float(n)
    rho = (between - within) / (between + (m - 1) * within)
    error = (1 - rho) * (1 + (m - 1) * rho) * math.sqrt(2 / (m * (m - 1) * (k - 1))) if m > 1 else 0.0
    rho = min(1.0, max(0.0, rho + abs(error)))
    return max(1.0, n / (1 + (m - 1) * rho))


# One-sided 95 % quantiles of Student's t by degrees of freedom (any statistics table).
_T95 = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 10: 1.812,
        12: 1.782, 15: 1.753, 20: 1.725, 30: 1.697, 60: 1.671}  # fmt: skip


def t95(degrees: int) -> float:
    """One-sided 95 % quantile of Student's t; between table rows the smaller degrees, which is wider."""
    return _T95[max(d for d in _T95 if d <= max(1, degrees))]


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Range for the typical value over engine starts: min to max under five values, else mean -/+ t95 x s / sqrt(n)."""
    n = len(values)
    if n < 5:
        return min(values), max(values)
    mean = math.fsum(values) / n
    s = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = t95(n - 1) * s / math.sqrt(n)
    return mean - half, mean + half


def median_coverage(starts: int) -> float:
    """Probability that min to max of `starts` values covers the true median: 1 - 2^(1 - starts)."""
    return 1.0 - 2.0 ** (1 - starts) if starts >= 1 else 0.0


def percentile(values: Sequence[float], q: float) -> float:
    """Percentile `q` (0-100) by linear interpolation between order statistics; infinite values stay infinite.

    Raises ValueError for an empty sequence.
    """
    if not values:
        raise ValueError("percentile of nothing")
    ordered = sorted(values)
    position = (len(ordered) - 1) * q / 100.0
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    if ordered[low] == ordered[high] or position == low:
        return ordered[low]
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


# Two-sided 95 % quantiles of Student's t by degrees of freedom (any statistics table).
_T95_TWO_SIDED = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
                  12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000}  # fmt: skip


def difference_interval(left: Sequence[float], right: Sequence[float]) -> tuple[float, float]:
    """Two-sided 95 % interval for mean(left) - mean(right), the variances not assumed equal.

    Raises ValueError below two values a side. Welch's t with Satterthwaite's degrees of freedom (Welch 1947, Biometrika
    34), rounded down to a row of the table.
    """
    if min(len(left), len(right)) < 2:
        raise ValueError("two values a side at least")
    means, errors = [], []
    for values in (left, right):
        n = len(values)
        mean = math.fsum(values) / n
        means.append(mean)
        errors.append((math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n, n - 1))
    total = math.fsum(e for e, _ in errors)
    gap = means[0] - means[1]
    if total == 0.0:
        return gap, gap
    degrees = total**2 / math.fsum(e**2 / d for e, d in errors)
    half = _T95_TWO_SIDED[max(d for d in _T95_TWO_SIDED if d <= max(1.0, degrees + 1e-9))] * math.sqrt(total)
    return gap - half, gap + half


def chance_of_disjoint(left: int, right: int) -> float:
    """Probability that two samples of the same distribution lie wholly apart: 2 / C(left + right, left).

    All orders are equally likely, and two of them are apart; 10 % for three against three (Wilcoxon 1945).
    """
    return min(1.0, 2 / math.comb(left + right, left))
