"""The PoC plan's section "Start one yourself": server and purpose are chosen, each form shows what it needs."""

from __future__ import annotations

from tests.pages.conftest import Launch

SERVER, PURPOSE = "start-server-nortia", "start-purpose-nortia"


def test_every_form_of_the_chosen_server_is_shown_for_the_measurement_first(launch: Launch) -> None:
    app = launch("poc-plan")
    assert not app.exception
    codes = [c.value for c in app.code]
    assert any(c.startswith("#!/bin/sh\n# vLLM") and "exec vllm serve" in c for c in codes)
    assert any("--cidfile vllm.cid" in c for c in codes)
    assert any("kind: Deployment" in c and "purpose benchmark" in c for c in codes)
    assert any("[Service]" in c and "Restart=no" in c for c in codes)
    assert {"Bare command", "Container", "Kubernetes", "systemd unit"} <= {tab.label for tab in app.tabs}


def test_daily_use_of_another_server_is_another_launch(launch: Launch) -> None:
    app = launch("poc-plan")
    app.selectbox(key=SERVER).set_value("tensorrt_llm")
    app = app.run()
    app.segmented_control(key=PURPOSE).set_value("production")
    app = app.run()
    assert not app.exception
    codes = [c.value for c in app.code]
    assert any("kind: ConfigMap" in c and "purpose production" in c for c in codes)
    said = "\n".join(m.value for m in (*app.markdown, *app.warning)).replace("\\", "")
    assert "There is no API key. Open to whoever reaches the port" in said
    assert "put a proxy that asks for a key in front" in said
    assert "Digest as pinned by invarlock/invarlock@1ac5dd28, not pulled here." in said
