"""The rules of the public specification, as its validator applies them.

What is found wrong here is what skills-ref 0.1.1 finds, quirks included: it takes the frontmatter to be what
lies between the first two ``---``, wherever they stand. Where the two differ on purpose: frontmatter of more
than 64 KiB or 16 levels is refused here, and bytes that are not UTF-8, at which skills-ref fails, are a
problem. Where they still differ, this refuses what skills-ref takes: a tab alone, or a comment after a tab,
on a line after an empty one; a key that is left out (``: text``) in some places; U+2028 at a line's start.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

from .models import Diagnostic
from .naming import MAX_COMPATIBILITY, MAX_DESCRIPTION, name_problems, normalise
from .reading import UnreadableError, read_bytes

PUBLIC_KEYS = frozenset({"name", "description", "license", "allowed-tools", "metadata", "compatibility"})


def public_problems(folder: Path, entry: str) -> list[Diagnostic]:
    """What the public validator would find."""
    from .safe_yaml import YAMLProblemError, load_mapping

    path = folder / entry
    try:
        block, first_line = _public_block(read_bytes(str(path)))
        values = load_mapping(block, public=True).values
    except UnreadableError as error:
        return [error.diagnostic]
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return [_error(path, line, "bad-encoding", "bytes that are not UTF-8", "save it as UTF-8")]
    except YAMLProblemError as error:
        return [_error(path, (error.line or 0) + first_line, "invalid-yaml", error.reason, "")]
    except ValueError as error:
        return [_error(path, 1, "no-frontmatter", str(error), "begin the file with --- and close with ---")]
    return [
        _error(path, None, code, message, advice) for code, message, advice in _breaches(values, folder.name)
    ]


def _public_block(data: bytes) -> tuple[str, int]:
    text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("---"):
        raise ValueError("the file does not begin with ---")
    _, block, *rest = text.split("---", 2)
    if not rest:
        raise ValueError("the frontmatter is not closed with ---")
    return block, 1


def _breaches(values: dict[str, Any], folder: str) -> list[tuple[str, str, str]]:
    found = []
    unknown = sorted(set(values) - PUBLIC_KEYS)
    if unknown:
        found.append(
            ("unknown-key", f"not in the specification: {', '.join(unknown)}", "put such keys under metadata")
        )
    found += _name_breaches(values.get("name"), folder)
    description = values.get("description")
    if not isinstance(description, str) or not description.strip():
        found.append(
            ("missing-description", "description is missing, empty or not text", "say what it does, and when")
        )
    elif len(description) > MAX_DESCRIPTION:
        found.append(
            ("description-too-long", f"description is longer than {MAX_DESCRIPTION} characters", "shorten it")
        )
    if "compatibility" in values:
        compatibility = values["compatibility"]
        if not isinstance(compatibility, str):
            found.append(("bad-compatibility", "compatibility is not text", "write a sentence"))
        elif len(compatibility) > MAX_COMPATIBILITY:
            found.append(
                (
                    "compatibility-too-long",
                    f"compatibility is longer than {MAX_COMPATIBILITY} characters",
                    "shorten it",
                )
            )
    return found


def _name_breaches(raw: object, folder: str) -> list[tuple[str, str, str]]:
    if not isinstance(raw, str) or not raw.strip():
        return [("missing-name", "name is missing, empty or not text", "use the folder's name")]
    name = normalise(raw)
    advice = "use lowercase letters, digits and single hyphens"
    found = [("bad-name", problem, advice) for problem in name_problems(name)]
    if unicodedata.normalize("NFKC", folder) != name:
        found.append(
            ("name-mismatch", f"name {name!r} is not that of its folder, {folder!r}", "make them equal")
        )
    return found


def _error(path: Path, line: int | None, code: str, message: str, advice: str) -> Diagnostic:
    return Diagnostic(path, line, "error", code, message, advice)
