"""What tests of bench may ask for that is not about how fast this machine is."""

from __future__ import annotations

import pytest

from bundle import validity

OF_THIS_MACHINE = {"dispatch-lag", "loop-lag", "loop-stalled", "coalesced", "client-cpu"}


@pytest.fixture
def never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures stay valid although this machine stood still for a moment, as a busy or shared one does."""
    monkeypatch.setattr(validity, "RULES", tuple(r for r in validity.RULES if r.id not in OF_THIS_MACHINE))
