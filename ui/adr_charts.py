"""Charts of the figures that a decision rests on, as pictures beside its Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from decisions.record import Adr
from planner.known import Known
from planner.requirements import Requirements
from services.exporting import Drawn
from services.verdicts import CaseState
from ui.charts import against_concurrency, svg
from ui.speed_charts import speed_picture
from ui.text import t
from ui.views import speed_frame, ttft_frame


def charts_of(state: CaseState, adr: Adr) -> Sequence[Drawn]:
    """Speed per user and time to first token against requests in flight, from the cited evidence alone.

    What was cited does not change, so neither does the picture; nothing cited at such a load gives none.
    """
    cited = {e.id for e in adr.evidence}
    of_adr = state._replace(evidence=Known(e for e in state.evidence if e.id in cited))
    r = state.requirements
    if r is None or state.plan is None or not of_adr.evidence:
        return ()
    return tuple(drawn for drawn in (_speed(of_adr, r), _first_token(of_adr, r)) if drawn)


def _speed(state: CaseState, r: Requirements) -> Drawn | None:
    frame = speed_frame(state)
    users = frame if frame.empty else frame[frame.metric == "user_tok_s"]
    if users.empty:
        return None
    chart, words = speed_picture(r, users)
    return Drawn("speed", words, svg(chart))


def _first_token(state: CaseState, r: Requirements) -> Drawn | None:
    frame = ttft_frame(state)
    asked = frame if frame.empty else frame[frame.statistic == f"p{r.ttft_percentile}"]
    if asked.empty:
        return None
    chart = against_concurrency(
        asked.assign(series=asked.who), y="value", y_title=t("TTFT (ms)"), required=r.ttft_s * 1000,
        required_label=t("within {x:g} s at p{p}", x=r.ttft_s, p=r.ttft_percentile), series="series", log=True,
    )  # fmt: skip
    return Drawn("ttft", t("TTFT against requests in flight, with the required time"), svg(chart))
