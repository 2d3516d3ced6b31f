"""What a skill may be called: by the public rules, and at all."""

from __future__ import annotations

import unicodedata

#: Limits of the public specification, in characters.
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
#: Longest name that is used at all, in bytes: a session has a folder of that name.
MAX_NAME_BYTES = 200


def normalise(name: str) -> str:
    """The form in which names are compared: NFKC, without blanks around it."""
    return unicodedata.normalize("NFKC", name.strip())


def name_problems(name: str) -> list[str]:
    """What the public specification has against a normalised name."""
    problems = []
    if len(name) > MAX_NAME:
        problems.append(f"name is longer than {MAX_NAME} characters ({len(name)})")
    if name != name.lower():
        problems.append(f"name {name!r} is not all lowercase")
    if name.startswith("-") or name.endswith("-"):
        problems.append(f"name {name!r} begins or ends with a hyphen")
    if "--" in name:
        problems.append(f"name {name!r} has two hyphens in a row")
    if not all(c.isalnum() or c == "-" for c in name):
        problems.append(f"name {name!r} holds characters other than letters, digits and hyphens")
    return problems


def usable(name: str) -> bool:
    """Whether a name can be that of a folder and be shown: lenient loading takes any such name."""
    return (
        bool(name)
        and name not in {".", ".."}
        and name.isprintable()
        and not any(c in '/\\<>:"|?*' for c in name)
        and len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES
    )


def make_usable(text: str) -> str:
    """A usable name made of ``text``, such as a folder's or an archive's name."""
    name = normalise(text)
    if usable(name):
        return name
    cleaned = "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:MAX_NAME].strip("-.")
    return cleaned if usable(cleaned) else "skill"
