"""Write the generated tables of docs/catalog.md from the schema; with --check, say whether they are current."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from planner import engine_schema, gpu_schema, model_schema, server_schema  # noqa: E402
from planner.catalog import load_catalog  # noqa: E402
from planner.engine_schema import PERFORMANCE_AXES  # noqa: E402
from planner.frozen import Frozen  # noqa: E402
from planner.weighting import CRITERIA  # noqa: E402
from scripts.generated import table, write_or_check  # noqa: E402


def classes(*modules: ModuleType) -> list[type[Frozen]]:
    """The classes of a schema in the order in which its modules define them."""
    return [c for module in modules for c in vars(module).values()
            if inspect.isclass(c) and issubclass(c, Frozen) and c.__module__ == module.__name__]  # fmt: skip


def described(c: type[Frozen]) -> str:
    """One class: its docstring, and a row per field of its own."""
    inherited = {name for base in c.__mro__[1:] if issubclass(base, Frozen) for name in base.model_fields}
    rows = [(f"`{name}`", f"`{c.__annotations__[name]}`".replace("|", "\\|"), "yes" if f.is_required() else "")
            for name, f in c.model_fields.items() if name not in inherited]  # fmt: skip
    base = next((b for b in c.__bases__ if b is not Frozen and issubclass(b, Frozen)), None)
    also = f"\n\nAnd every field of {base.__name__}." if base else ""
    return (
        f"#### {c.__name__}\n\n{inspect.cleandoc(c.__doc__ or '')}\n\n{table(('field', 'form', 'needed'), rows)}{also}"
    )


def blocks() -> dict[str, str]:
    """The generated blocks by marker."""
    vllm = load_catalog().engine("vllm")
    criteria = [(f"`{name}`", "weighed" if name in CRITERIA else "shown", "yes" if name in PERFORMANCE_AXES else "")
                for name in vllm.axes]  # fmt: skip
    return {
        "criteria": table(("criterion", "in the score", "about performance"), criteria),
        "engines": "\n\n".join(map(described, reversed(classes(server_schema, engine_schema)))),
        "models and gpus": "\n\n".join(map(described, classes(model_schema, gpu_schema))),
    }


if __name__ == "__main__":
    write_or_check(ROOT / "docs" / "catalog.md", blocks())
