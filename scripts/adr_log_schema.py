"""Write docs/adr-log.schema.json, the schema of the log as JSON; with --check, say whether it is current."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from decisions.log_json import schema  # noqa: E402

FILE = ROOT / "docs" / "adr-log.schema.json"


def text() -> str:
    """The schema as it stands in the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if FILE.read_text(encoding="utf-8") == text() else f"{FILE.name} is not current: run {sys.argv[0]}")
    FILE.write_text(text(), encoding="utf-8")
