"""Write docs/example/ anew: the ADRs of the shipped cases, decided and exported as into a team's repository.

python scripts/example_adrs.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from services.decisions import accept, propose_draft, save_draft  # noqa: E402
from services.exporting import export_all  # noqa: E402
from services.shipped import install_shipped  # noqa: E402
from services.workspace import open_workspace  # noqa: E402
from ui.adr_charts import charts_of  # noqa: E402

DECIDED_BY = "the review meeting"


def main() -> None:
    """Accept both drafts in a scratch workspace and export them."""
    target = ROOT / "docs" / "example"
    target.mkdir(parents=True, exist_ok=True)
    for old in (*target.glob("*.md"), *target.glob("*.svg")):
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        ws = open_workspace(Path(scratch))
        install_shipped(ws)
        for adr in ws.store.adrs.all():
            draft = ws.store.adrs.draft(adr.id)
            people = adr.people.model_copy(update={"decided": (DECIDED_BY,)})
            conditions = tuple(c.model_copy(update={"owner": "infrastructure"}) for c in adr.conditions)
            text = draft.adr.model_copy(update={"people": people, "conditions": conditions})
            saved = save_draft(ws, text, draft.version, DECIDED_BY)
            propose_draft(ws, adr.id, saved.version, DECIDED_BY)
            accept(ws, adr.id, DECIDED_BY)
        export_all(ws, target, charts=charts_of)
        for path in sorted(target.iterdir()):
            print(path.relative_to(ROOT))
        ws.store.close()


if __name__ == "__main__":
    main()
