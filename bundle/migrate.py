"""Manifests as they are read: those of an older version come to the present form by one step a version.

The sealed file stays as it was. Whoever adds a field to the manifest raises BUNDLE_SCHEMA and adds a step here, so that
an older Flipline asks for an update and this one knows what an older bundle could not have said.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from bundle.manifest import BUNDLE_SCHEMA, Manifest
from planner.errors import BundleError, SchemaTooNew
from planner.faults import first_fault

Raw = dict[str, Any]
# What the first bundles of version 1 did not watch, by the field of a repeat that they lack.
UNWATCHED = {
    "loop_stalled_share": "whether the client stood still",
    "receive_buffer_full": "whether it held the server back",
    "server_restarts": "whether a server that ran already began anew",
}


def _from_1(raw: Raw) -> Raw:
    """Version 1 grew while it was called 1: what its first bundles did not watch is said, and not taken for 0."""
    repeats = [] if raw.get("imported") else [r for r in raw.get("repeats", ()) if isinstance(r, dict)]
    unwatched = [words for field, words in UNWATCHED.items() if any(field not in r for r in repeats)]
    note = f"an early bundle: nobody watched {', '.join(unwatched)}."
    return raw | {"findings": [*raw.get("findings", ()), *([note] if unwatched else [])]}


STEPS: dict[int, Callable[[Raw], Raw]] = {1: _from_1}  # version -> the step to the next one


def read_manifest(body: bytes | str, where: str) -> Manifest:
    """The manifest in these bytes, whichever version wrote it.

    Raises BundleError when it is none, SchemaTooNew when a newer Flipline wrote it.
    """
    try:
        raw = json.loads(body)
        json.dumps(raw, ensure_ascii=False).encode()  # half a surrogate pair is text that nobody can store or print
        version = raw.get("schema_version", 1)
        if isinstance(version, int) and version > BUNDLE_SCHEMA:
            raise SchemaTooNew(f"bundle schema {version} is newer than {BUNDLE_SCHEMA}.", where=where,
                               fix="Update Flipline.")  # fmt: skip
        while (step := STEPS.get(version)) is not None:
            version += 1
            raw = step(raw) | {"schema_version": version}
        return Manifest.model_validate(raw)
    except ValidationError as e:
        raise BundleError(f"manifest.json: {first_fault(e)}", where=where) from None
    except (ValueError, AttributeError, TypeError, RecursionError) as e:
        raise BundleError(f"manifest.json is not readable: {e}.", where=where, fix="Use the original bundle.") from None
