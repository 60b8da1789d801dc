"""The results of a report: capacity and cost, charts, comparison, quality, theory, and all figures as tables."""

from __future__ import annotations

from collections.abc import Iterator

from planner.knee import Knee
from planner.measured_capacity import capacity_words
from planner.request_rate import DEFAULT_UTILISATION
from planner.requirements import Requirements
from services.calibrations import calibration
from services.comparison import Compared, comparison, pairs
from services.quality import PairOfRates, precision_warnings, rates
from services.quality import pairs as quality_pairs
from services.results import CandidateResult, rate_knees, results_of, theory_of
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.comparison_view import comparison_frame, explanations, refused
from ui.quality_view import rates_frame
from ui.report_parts import Block, Chart, Heading, Limit, Paragraph, Section, marked, table_of
from ui.results_capacity import cost_in_words, units_frame
from ui.results_rates import first_token_by_rate, goodput_by_rate, in_seconds, ladder_frame
from ui.results_theory import ratios_frame, theory_frame, theory_picture
from ui.speed_charts import first_token_picture, output_picture, speed_picture
from ui.text import t, tn
from ui.views import kv_spread, outcomes_frame, rate_frame, results_frame, speed_frame, ttft_frame
from ui.words import metrics_in_words


def capacity_section(ws: Workspace, state: CaseState) -> Section:
    """The knee of each candidate, the batch limit, units for both ends of the peak, power and cost."""
    found = results_of(ws, state)
    blocks: list[Block] = [b for one in found if one.knees for b in _capacity(one)]
    if undecided := [one.candidate for one in found if not one.knees]:
        who = ", ".join(undecided)
        blocks.append(Paragraph(t("No load decides it for {who}: not measured, or not enough.", who=who)))
    if any(u.units for one in found for u in one.units):
        share = t("A unit is loaded to at most {x:.0%} of the rate that it was seen to keep.", x=DEFAULT_UTILISATION)
        blocks.append(Paragraph(share, tone="note"))
    return Section(t("Best operating point, units and cost"), tuple(blocks))


def _capacity(one: CandidateResult) -> Iterator[Block]:
    keeps = capacity_words(one.unit)
    said = t("one unit keeps {what}", what=" · ".join(keeps)) if keeps else t("no load keeps every level")
    yield Heading(f"{one.candidate}: {said}")
    yield from (_knee(knee) for knee in one.knees)
    if one.limit:
        limit = one.limit.max_num_seqs
        yield Paragraph(f"{t('Batch limit {n}', n=limit) if limit else t('No batch limit')}: {one.limit.reason}")
    if any(u.units for u in one.units):
        yield table_of(units_frame(one))
    yield from (Paragraph(u.sentence) for u in one.units if u.units is None)
    if one.cost:
        yield Paragraph(cost_in_words(one.cost), tone="note")


def _knee(knee: Knee) -> Paragraph:
    way = t("closed loop") if knee.way == "closed" else t("open loop")
    text = f"{metrics_in_words(knee.sentence)} ({way}, {knee.lengths})"
    return Paragraph(text, marked(knee.kind.value if knee.kind else ""))


def speed_section(state: CaseState) -> Section:
    """Speed per user, total output and first token against requests in flight, with what is required."""
    r = state.requirements
    if r is None or state.plan is None:
        return Section(t("Speed against load"), ())
    return Section(t("Speed against load"), tuple(_speeds(state, r)))


def _speeds(state: CaseState, r: Requirements) -> Iterator[Block]:
    speeds, in_flight, first = speed_frame(state), t("In flight"), ttft_frame(state)
    charts = (
        (t("Speed per user, slow tail (p5)"), "user_tok_s", speed_picture, t("promised"), r.user_tok_s_promise),
        (t("Total output"), "output_tok_s", output_picture, t("needed"), r.peak_users_max * r.user_tok_s_target),
    )
    for title, metric, picture, words, limit in charts:
        frame = speeds[speeds.metric == metric]
        if frame.empty:
            yield Paragraph(f"{title}: {t('not measured, and not predicted either.')}")
        else:
            shown = picture(r, frame)
            yield Chart(title, shown.words, shown.chart, frame, "batch", in_flight, "tok/s", (Limit(words, limit),))
    asked = Limit(t("within, at p{p}", p=r.ttft_percentile), r.ttft_s * 1000)
    for who in dict.fromkeys(first.who):
        frame = first[first.who == who]
        shown = first_token_picture(r, frame, frame)
        title = t("Time to first token, queue included: {who}", who=who)
        yield Chart(title, shown.words, shown.chart, frame, "batch", in_flight, "ms", (asked,))
    if first.empty:
        yield Paragraph(t("Time to first token: not measured at a number of requests in flight."))


def rates_section(state: CaseState) -> Section:
    """First token and goodput against the offered rate with the knee, and what a looser promise would buy."""
    r = state.requirements
    title = t("Rate curve")
    if r is None or state.plan is None:
        return Section(title, ())
    ttft, goodput = rate_frame(state, "ttft_ms", f"p{r.ttft_percentile}"), rate_frame(state, "goodput", "value")
    if ttft.empty:
        return Section(title, (Paragraph(t("Not measured at a rate of requests.")),))
    knees, offered = rate_knees(state, r.ttft_s), t("Requests per second offered")
    seconds = in_seconds(ttft)
    first = first_token_by_rate(r, seconds, knees, r.ttft_s)
    limit = Limit(t("required"), r.ttft_s)
    blocks: list[Block] = [
        Chart(t("TTFT p{p}", p=r.ttft_percentile), first.words, first.chart, seconds, "rate", offered, "s", (limit,))
    ]
    if not goodput.empty:
        share = goodput_by_rate(goodput, knees)
        blocks.append(Chart(t("Goodput"), share.words, share.chart, goodput, "rate", offered, "share"))
    blocks += [_knee(k) for k in knees]
    blocks.append(table_of(ladder_frame(state, r, r.ttft_s)))
    return Section(title, tuple(blocks))


def comparison_section(state: CaseState) -> Section:
    """Every two candidates figure by figure, with declared differences, refusals, warnings and possible causes."""
    found = tuple(comparison(state, *two) for two in pairs(state))
    return Section(t("Comparison"), tuple(b for compared in found for b in _compared(compared)))


def _compared(compared: Compared) -> Iterator[Block]:
    parity = compared.parity
    yield Heading(t("{a} against {b}", a=compared.left, b=compared.right))
    if parity is None:
        yield Paragraph(t("One of the two states no contract, so nothing compares."))
    else:
        yield Paragraph("; ".join([t(parity.state), *map(str, parity.differences)]) + ".")
    for warning in dict.fromkeys(row.warning for row in compared.rows if row.warning):
        yield Paragraph(warning, tone="warning")
    frame = comparison_frame(compared)
    if not frame.empty:
        yield table_of(frame, wide=True)
    for reason, figures in refused(compared).items():
        yield Paragraph(f"{t('refused')} {', '.join(figures)}: {metrics_in_words(reason)}.")
    rows, expected = compared.by_chance
    if rows:
        text = tn(
            rows, "{n} row rests on ranges over a few starts. Without any difference about {k:.2g} would show one.",
            "{n} rows rest on ranges over a few starts. Without any difference about {k:.2g} would show one.",
            k=expected,
        )  # fmt: skip
        yield Paragraph(text, tone="note")
    for sentence, figures in explanations(compared).items():
        yield Paragraph(f"{t('What could explain it')}, {', '.join(figures)}: {sentence}", tone="note")


def quality_section(state: CaseState) -> Section:
    """Speed claims across precisions, pass rates, and candidates paired by item."""
    blocks: list[Block] = [Paragraph(warning, tone="warning") for warning in precision_warnings(state)]
    planned = any(p.shape == "quality" for p in state.plan.load_points) if state.plan else False
    if found := rates(state):
        blocks.append(table_of(rates_frame(found), marks=(t("Kind"),)))
        blocks += [_pair(pair) for pair in quality_pairs(state)]
    elif planned:
        blocks.append(Paragraph(t("Planned, and not measured.")))
    return Section(t("Quality"), tuple(blocks))


def _pair(pair: PairOfRates) -> Paragraph:
    who = t("{a} against {b} on {where}", a=pair.left.candidate, b=pair.right.candidate, where=pair.left.point)
    kind = marked(pair.left.kind.value)
    if pair.found is None:
        return Paragraph(f"{who}: {t('not comparable: {why}', why=pair.refused)}.", kind)
    named = f" ({'; '.join(pair.differences)})" if pair.differences else ""
    return Paragraph(f"{who}{named}: {t(pair.found.outcome)}: {pair.found.sentence}.", kind)


def theory_section(ws: Workspace, state: CaseState) -> Section:
    """Measured over bound and planning value by regime, and what the sizing takes over."""
    found = theory_of(calibration(ws), state)
    blocks: list[Block] = []
    if found.regimes:
        frame = ratios_frame(found)
        shown, limit = theory_picture(frame), Limit(t("as computed"), 1.0)
        title = t("Measured / theory, speed per user")
        blocks.append(Chart(title, shown.words, shown.chart, frame, "batch", t("In flight"), "x", (limit,)))
        blocks.append(table_of(theory_frame(found), marks=(t("Kind"),), wide=True))
        blocks.append(
            Paragraph(t("The sizing follows the ratios marked as used, in their own regime only."), tone="note")
        )
    elif state.runs:
        blocks.append(Paragraph(t("No run can be held against a computed speed.")))
    for reason in sorted({x.reason for x in found.left_out}):
        n = sum(x.reason == reason for x in found.left_out)
        blocks.append(
            Paragraph(
                tn(n, "Calibrates nothing ({n} figure): {why}", "Calibrates nothing ({n} figures): {why}", why=reason),
                tone="note",
            )
        )
    return Section(t("Theory against measurement"), tuple(blocks))


def figures_section(state: CaseState) -> Section:
    """All figures by candidate and load point, and what each engine start came to."""
    figures, outcomes = results_frame(state), outcomes_frame(state)
    blocks: list[Block] = []
    if not figures.empty:
        blocks.append(table_of(figures, marks=(t("Kind"),), wide=True))
    if not outcomes.empty:
        blocks += [Heading(t("Outcomes")), table_of(outcomes, marks=(t("Kind"),), wide=True)]
        blocks += [Paragraph(t("KV capacity of {what}", what=spread), tone="note") for spread in kv_spread(state)]
    return Section(t("Figures"), tuple(blocks), appendix=True)
