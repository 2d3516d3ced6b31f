"""Skills as they are found in the wild, one odd thing each, and what a right loader makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.builders import write_skill

TEXT = "Does a thing. Use when asked."
Case = tuple[str, Callable[[Path], object], list[tuple[str, str]]]


def _raw(raw: str | bytes, *, folder: str = "odd", entry: str = "SKILL.md") -> Callable[[Path], object]:
    return lambda root: write_skill(root, folder, raw=raw, entry=entry)


def _linked(root: Path) -> None:
    real = write_skill(root.parent / f"{root.name}-elsewhere", "odd", description=TEXT)
    root.mkdir(parents=True)
    (root / "odd").symlink_to(real, target_is_directory=True)


def _two(first: Callable[[Path], object]) -> Callable[[Path], object]:
    def both(root: Path) -> None:
        first(root)
        write_skill(root, "zebra", description=TEXT)

    return both


def cases() -> Iterator[Case]:
    """Name, builder of a folder of skills, and the skills in it as name and description."""
    head = f"---\nname: odd\ndescription: {TEXT}\n"
    right = [("odd", TEXT)]
    good = ("zebra", TEXT)
    yield (
        "unquoted colon",
        _raw("---\nname: odd\ndescription: Use when: asked\n---\n"),
        [("odd", "Use when: asked")],
    )
    yield "byte order mark", _raw(b"\xef\xbb\xbf" + head.encode() + b"---\n"), right
    yield "CRLF", _raw((head + "---\nbody\n").replace("\n", "\r\n")), right
    yield "--- in description", _raw("---\nname: odd\ndescription: a --- b\n---\n"), [("odd", "a --- b")]
    yield "nested metadata", _raw(head + "metadata:\n  a:\n    b: c\n---\n"), right
    yield "flow metadata", _raw(head + "metadata: {a: b, c: d}\n---\n"), right
    yield "list allowed-tools", _raw(head + "allowed-tools:\n  - Read\n  - Bash\n---\n"), right
    yield (
        "Unicode name",
        _raw(f"---\nname: größe\ndescription: {TEXT}\n---\n", folder="größe"),
        [("größe", TEXT)],
    )
    yield "skill.md", _raw(head + "---\n", entry="skill.md"), right
    yield "linked folder", _linked, right
    yield "nested folder", _raw(head + "---\n", folder="group/odd"), right
    yield "fence at the end of file", _raw(head + "---"), right
    yield "blank after the fence", _raw(head.replace("---", "---  ") + "--- \nbody\n"), right
    yield "blank line first", _raw("\n" + head + "---\n"), right
    yield "name 123", _raw(f"---\nname: 123\ndescription: {TEXT}\n---\n", folder="123"), [("123", TEXT)]
    yield "key given twice", _raw(head + "license: A\nlicense: B\n---\n"), right
    yield "bad UTF-8 in body", _raw(head.encode() + b"---\n\xff\xfe\n"), right
    yield "broken neighbour", _two(_raw("---\nname: [odd\n---\n")), [good]
    yield "neighbour without description", _two(_raw("---\nname: odd\n---\n")), [good]
    block = "description: |-\n  Use when: asked\n  - a: b\n"
    yield "block scalar", _raw(f"---\nname: odd\n{block}---\n"), [("odd", "Use when: asked\n- a: b")]
    yield "no stays text", _raw("---\nname: odd\ndescription: no\n---\n"), [("odd", "no")]
    yield "1.10 stays text", _raw("---\nname: odd\ndescription: 1.10\n---\n"), [("odd", "1.10")]
    yield "date stays text", _raw("---\nname: odd\ndescription: 2024-01-02\n---\n"), [("odd", "2024-01-02")]
