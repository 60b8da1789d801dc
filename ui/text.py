"""Every visible string passes through `t`, so that a language is one more catalogue and no page changes."""

from __future__ import annotations

_CATALOGUES: dict[str, dict[str, str]] = {"en": {}}
_current = "en"


def t(message: str, **values: object) -> str:
    """Translate an English message and fill in its {named} values.

    A message without a translation is shown in English, never as a key.
    """
    text = _CATALOGUES[_current].get(message, message)
    return text.format(**values) if values else text


def tn(n: int, one: str, many: str, **values: object) -> str:
    """The message for one thing, or the one for any other number; `n` is among its values."""
    return t(one if n == 1 else many, n=n, **values)


def language() -> str:
    """The language that texts are in now, as pages state it."""
    return _current
