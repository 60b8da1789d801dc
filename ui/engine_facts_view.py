"""The facts of one engine's file as they stand: what it reads and runs on, its flags, routes and streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from planner.engine_schema import Engine
from planner.server_schema import RequestFields, Server, Streaming
from ui.parts import plain
from ui.text import t
from ui.whole_table import whole_table


def show(engine: Engine) -> None:
    """One part for the engine, and one for each server that its file describes."""
    with st.expander(t("Version, formats and hardware"), icon=":material/memory:"):
        _version(engine)
    for server in (engine, *((engine.llama_server,) if engine.llama_server else ())):
        with st.expander(t("Flags, routes and streams of {name}", name=plain(server.name)), icon=":material/flag:"):
            _server(server)


def _version(engine: Engine) -> None:
    formats, hardware = engine.formats, engine.hardware
    _lines(
        {
            t("Repository"): engine.repository,
            t("Version"): t("{version} of {day} ({basis}), read at {commit}", version=engine.version, day=engine.date,
                            basis=engine.date_basis, commit=engine.commit),
            t("Hardware that it documents"): _listed(hardware.documented),
            t("Hardware by plugin"): _listed(hardware.plugins),
            t("Types of the KV cache"): _listed(formats.kv_cache_dtypes),
            t("Formats by plugin only"): _listed(formats.not_in_core),
        }
    )  # fmt: skip
    rows = [
        {
            t("Weights"): w.weight_format, t("Quantization"): ", ".join(w.quantization),
            t("From compute capability"): w.min_compute_capability, t("Native from"): w.native_from or "",
            t("Not on"): ", ".join(w.not_on), t("Note"): w.note, t("Source"): w.source,
        }
        for w in formats.weights
    ]  # fmt: skip
    whole_table(rows, t("Weight formats that {name} reads", name=engine.name))


def _server(server: Server) -> None:
    flags = [
        {
            t("What it sets"): _words(role), t("Flag"): p.flag or t("none"), t("Switched off by"): p.switch_off,
            t("Also"): ", ".join((*p.also, *p.together)), t("Default"): p.default, t("Note"): p.note,
        }
        for role, p in server.parameters.items()
    ]  # fmt: skip
    whole_table(flags, t("Flags of {name}", name=server.name))
    routes = [
        {t("Route"): f"{e.method} {e.path}", t("For"): _words(role), t("Needs"): e.needs, t("Note"): e.note}
        for role, e in server.endpoints.items()
    ]
    whole_table(routes, t("Routes of {name}", name=server.name))
    log = {t("In the log: {what}", what=_words(name)): p.note for name, p in server.log_patterns.items()}
    _lines(
        _request(server.request) | _streaming(server.streaming) | {t("Metrics page"): server.metrics_page.note} | log
    )


def _request(r: RequestFields) -> dict[str, str]:
    """What a request may say."""
    does = {True: t("yes"), False: t("no")}
    return {
        t("Longest answer"): _listed((r.max_tokens, *r.also_max_tokens)),
        t("Answer of a fixed length (ignore_eos, min_tokens)"): f"{does[r.ignore_eos]}, {does[r.min_tokens]}",
        t("Prefix cache apart per request (cache_salt)"): does[r.cache_salt],
        t("Fields that it does not know"): r.unknown_fields,
    }


def _streaming(s: Streaming) -> dict[str, str]:
    """How answers arrive."""
    return {
        t("First chunk"): s.first_chunk, t("Reasoning stands in"): s.reasoning_field, t("Usage"): s.usage,
        t("Usage while it streams"): s.continuous_usage, t("Cached tokens"): s.cached_tokens,
        t("Tokens are counted"): s.counting, t("Streams were read in"): s.source,
    }  # fmt: skip


def _lines(said: Mapping[str, str]) -> None:
    st.markdown("  \n".join(f"**{plain(name)}**: {plain(text)}" for name, text in said.items() if text))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or t("none")


def _words(role: str) -> str:
    return role.replace("_", " ")
