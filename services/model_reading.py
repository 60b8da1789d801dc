"""A model that the catalogue lacks, read from its config.json: a text, a checkpoint's folder, or the hub."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

from planner.errors import InputError
from planner.model_config import ConfigReading, read_config
from planner.model_schema import Model

INDEX = "model.safetensors.index.json"
MODELOPT = "hf_quant_config.json"
LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
LARGEST_TEXT = 60_000_000
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


class Proposal(NamedTuple):
    """A model as it was read, not yet kept."""

    reading: ConfigReading
    source: str

    @property
    def model(self) -> Model:
        """The entry that would be kept."""
        return self.reading.model


def from_text(
    text: str, *, id: str, name: str, on: date, index: str | None = None, quantization: str | None = None,
    headers: Mapping[str, int] | None = None,
) -> Proposal:  # fmt: skip
    """Read a pasted or uploaded config.json called `name`; raises InputError with one sentence."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    source = f"{name}, sha256 {digest[:16]}, read {on}"
    reading = read_config(text, id=id, source=source, index=index, headers=headers, quantization=quantization)
    return Proposal(reading, source)


def from_folder(folder: Path, *, on: date, id: str = "") -> Proposal:
    """Read a checkpoint's folder: config.json, and the headers of its safetensors or else their index.

    Raises InputError that names the file.
    """
    if not folder.is_dir():
        raise InputError("no such folder.", where=str(folder), fix="Give the folder that holds config.json.")
    config = folder / "config.json"
    if not config.is_file():
        gguf = next(folder.glob("*.gguf"), None)
        fix = "GGUF files are not read: give the config.json of the model they were made from." if gguf else (
            "Give the folder that holds config.json."
        )  # fmt: skip
        raise InputError("there is no config.json.", where=str(folder), fix=fix)
    headers = {n: size for path in sorted(folder.glob("*.safetensors")) for n, size in tensor_bytes(path).items()}
    return from_text(
        _text(config), id=id or folder.resolve().name, name=f"{folder.resolve().name}/config.json", on=on,
        index=_text_or_none(folder / INDEX), headers=headers, quantization=_text_or_none(folder / MODELOPT),
    )  # fmt: skip


def tensor_bytes(path: Path) -> dict[str, int]:
    """Bytes per tensor from the header of a safetensors file; the tensors themselves are not read.

    8 bytes of length, then JSON (safetensors format). Raises InputError for a file that is cut off or something else.
    """
    fix = "Fetch the file again."
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= LARGEST_HEADER:
            raise InputError("not a safetensors file.", where=path.name, fix=fix)
        raw = file.read(length)
    if len(raw) < length:
        raise InputError("the file is cut off within its header.", where=path.name, fix=fix)
    try:
        header = json.loads(raw)
        found = {n: int(t["data_offsets"][1]) - int(t["data_offsets"][0])
                 for n, t in header.items() if n != "__metadata__"}  # fmt: skip
    except (ValueError, RecursionError, AttributeError, KeyError, IndexError, TypeError):
        raise InputError("the header is not what safetensors writes.", where=path.name, fix=fix) from None
    if any(size < 0 for size in found.values()):
        raise InputError("the header has a tensor of negative size.", where=path.name, fix=fix)
    return found


def from_hub(hub_id: str, *, on: date, id: str = "", revision: str | None = None) -> Proposal:
    """Fetch config.json and the index of a hub repository, nothing else; needs the optional huggingface_hub.

    Raises InputError when it is not installed, the hub is out of reach, or the repository is gated or unknown.
    """
    if not HUB_ID.fullmatch(hub_id.strip()):
        raise InputError(f"{hub_id!r} is no hub id.", where="hub", fix="Write owner/name, for example Qwen/Qwen3-8B.")
    try:
        import huggingface_hub as hub
        from huggingface_hub import errors
    except ImportError:
        raise InputError(
            "huggingface_hub is not installed.",
            where="hub",
            fix="Install it (pip install huggingface_hub), or paste the config.json.",
        ) from None

    def fetched(name: str, optional: bool = False) -> Path | None:
        try:
            return Path(hub.hf_hub_download(hub_id.strip(), name, revision=revision))
        except errors.GatedRepoError:
            raise _hub_error(hub_id, "the repository is gated", "Accept its terms on the hub and log in") from None
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise _hub_error(hub_id, "the hub knows no such repository or revision", "Check the spelling") from None
        except errors.LocalEntryNotFoundError:
            raise _hub_error(hub_id, "the hub is out of reach from here", "Check the network") from None
        except errors.EntryNotFoundError:
            if optional:
                return None
            raise _hub_error(
                hub_id, f"the repository has no {name}", "Choose the repository with the weights"
            ) from None
        except (OSError, errors.HfHubHTTPError) as e:
            raise _hub_error(hub_id, f"the hub did not answer ({type(e).__name__})", "Try again later") from None

    config = fetched("config.json")
    assert config is not None
    index, quant = fetched(INDEX, optional=True), fetched(MODELOPT, optional=True)
    # The hub's cache keeps each file under snapshots/COMMIT/.
    commit = config.parent.name[:12]
    text = _text(config)
    return from_text(
        text, id=id or hub_id.strip(), name=f"{hub_id.strip()}@{commit} config.json", on=on,
        index=_text(index) if index else None, quantization=_text(quant) if quant else None,
    )  # fmt: skip


def _hub_error(hub_id: str, what: str, fix: str) -> InputError:
    return InputError(f"{what}.", where=hub_id, fix=f"{fix}, or paste the config.json.")


def find(given: str, *, on: date, id: str = "", index: Path | None = None) -> Proposal:
    """Read a file, a folder or a hub id, whichever `given` is: what `model add` takes. Raises InputError."""
    path = Path(given).expanduser()
    if path.is_dir():
        return from_folder(path, on=on, id=id)
    if path.is_file():
        beside = _text(index) if index else _text_or_none(path.parent / INDEX)
        return from_text(_text(path), id=id or path.resolve().parent.name, name=path.name, on=on, index=beside)
    if index is not None or path.suffix == ".json" or given.startswith((".", "/", "~")):
        raise InputError("no such file or folder.", where=given, fix="Give a config.json, a folder or a hub id.")
    return from_hub(given, on=on, id=id)


def _text_or_none(path: Path) -> str | None:
    return _text(path) if path.is_file() else None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_TEXT:
            raise InputError("the file is far larger than such a file is.", where=path.name, fix="Check the path.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            "not readable as text.", where=path.name, fix="Give the config.json, not the weights."
        ) from None
    except OSError as e:
        raise InputError(
            f"cannot be read: {e.strerror}.", where=path.name, fix="Check the path and its rights."
        ) from None
