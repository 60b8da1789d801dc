"""Names and formatting of quantities: GB (10^9) beside GiB (2^30), durations, tok/s."""

from __future__ import annotations

GB = 10**9
GIB = 2**30


def format_gb(size_bytes: float) -> str:
    """Decimal gigabytes with one decimal, three below 1: `23.1 GB`, `0.403 GB`."""
    size_gb = size_bytes / GB
    return f"{size_gb:.3f} GB" if 0 < size_gb < 1 else f"{size_gb:,.1f} GB"


def format_gib(size_bytes: float) -> str:
    """Binary gigabytes with two decimals, as engines log them: `14.96 GiB`."""
    return f"{size_bytes / GIB:,.2f} GiB"


def format_tok_s(tok_s: float) -> str:
    """Whole tokens per second; one decimal below 5, where it changes what a reader sees."""
    return f"{tok_s:,.0f} tok/s" if tok_s >= 5 else f"{tok_s:.1f} tok/s"


def format_duration(seconds: float) -> str:
    """A duration as a person says it: `85 ms`, `42.4 s`, `5 min 12 s`, `2 h 05 min`; `15 min` where it is exact."""
    if seconds < 1:
        milliseconds = seconds * 1000
        return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min" + ("" if seconds % 60 == 0 else f" {whole % 60:02d} s")
    minutes = round(seconds / 60)
    return f"{minutes // 60} h" + ("" if seconds % 3600 == 0 else f" {minutes % 60:02d} min")
