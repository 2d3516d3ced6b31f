from __future__ import annotations

import io
import os
import struct
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.errors import InvalidSkillStructureError, SkillArchiveError
from conjure_jupyter.skills import extract_skill_file, load, load_skill_file, pack_skill, validate
from conjure_jupyter.skills.archive_cache import cache_folder, prune
from tests.builders import write_skill

HEAD = b"---\nname: odd\ndescription: text\n---\nBody.\n"


def info(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    entry.create_system = 3
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def make(path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes], skill: bool = True) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (("odd/SKILL.md", HEAD), *entries) if skill else entries:
            archive.writestr(info(name) if isinstance(name, str) else name, data)
    return path


def patched(path: Path, old: bytes, new: bytes, count: int = -1) -> Path:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, count))
    return path


def overlapping(path: Path) -> Path:
    """Two directory entries that share one file's bytes."""
    make(path, ("odd/a", b"x" * 1000), ("odd/b", b"x" * 1000))
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        a, b = archive.getinfo("odd/a"), archive.getinfo("odd/b")
    directory = data.rindex(b"odd/b") - 46
    path.write_bytes(data[: directory + 42] + struct.pack("<L", a.header_offset) + data[directory + 46 :])
    assert b.header_offset != a.header_offset
    return path


def quoted_overlap(path: Path) -> Path:
    """Each file's data is the next file's header, quoted by a stored block, and its data (Fifield's bomb)."""
    kernel = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = kernel.compress(b"\0" * 100_000) + kernel.flush()
    crc, size = zlib.crc32(b"\0" * 100_000), 100_000
    files: list[tuple[str, int, int, int, bytes]] = []
    body = packed
    plain = b"\0" * 100_000
    for number in range(20):
        name = f"odd/{19 - number:02d}"
        header = (
            struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, crc, len(body), size, len(name), 0)
            + name.encode()
        )
        files.append((name, crc, len(body), size, header + body))
        if number < 19:
            quote = header
            plain = quote + plain
            crc, size = zlib.crc32(plain), len(plain)
            body = b"\0" + struct.pack("<HH", len(quote), len(quote) ^ 0xFFFF) + quote + body
    first = (
        struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(HEAD), len(HEAD), len(HEAD), 12, 0)
        + b"odd/SKILL.md"
        + HEAD
    )
    out = io.BytesIO()
    out.write(first)
    whole = files[-1][4]
    start = out.tell()
    out.write(whole)
    offsets = [start + len(whole) - len(data) for *_, data in files]
    directory = out.tell()
    entries = [("odd/SKILL.md", zlib.crc32(HEAD), len(HEAD), len(HEAD), 0, 0)]
    entries += [(n, c, p, s, o, 8) for (n, c, p, s, _), o in zip(files, offsets, strict=True)]
    for name, crc, packed_size, size, offset, method in entries:
        out.write(
            struct.pack(
                "<4s6H3L5H2L",
                b"PK\1\2",
                20,
                20,
                0,
                method,
                0,
                33,
                crc,
                packed_size,
                size,
                len(name),
                0,
                0,
                0,
                0,
                0,
                offset,
            )
            + name.encode()
        )
    length = out.tell() - directory
    out.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(entries), len(entries), length, directory, 0))
    path.write_bytes(out.getvalue())
    return path


def lying(path: Path) -> Path:
    """A file that says it is shorter than it is."""
    make(path, ("odd/a", b"y" * 5000))
    data = path.read_bytes()
    return patched(path, struct.pack("<L", 5000), struct.pack("<L", 50)) if data else path


def zip64_sentinel(path: Path) -> Path:
    make(path)
    data = path.read_bytes()
    end = data.rindex(b"PK\5\6")
    path.write_bytes(data[: end + 12] + b"\xff\xff\xff\xff" + data[end + 16 :])
    return path


def encrypted(path: Path) -> Path:
    make(path, ("odd/a", b"x"))
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\1\2") + 8] |= 1
    path.write_bytes(bytes(data))
    return path


def renamed(new: str) -> Callable[[Path], Path]:
    """An archive with an entry whose name the library would not write."""
    return lambda path: patched(
        make(path, ("odd/" + "q" * (len(new) - 4), b"x")), b"odd/" + b"q" * (len(new) - 4), new.encode()
    )


HOSTILE: dict[str, Callable[[Path], Path]] = {
    "parent": lambda path: make(path, ("../evil", b"x")),
    "parent inside": lambda path: make(path, ("odd/../../evil", b"x")),
    "absolute": lambda path: make(path, ("/tmp/evil", b"x")),
    "dot": lambda path: make(path, ("odd/./a", b"x")),
    "double slash": lambda path: make(path, ("odd//a", b"x")),
    "backslash": renamed("odd\\..\\evil"),
    "drive": renamed("C:/evil"),
    "NUL": renamed("odd/a\0evil"),
    "escape": lambda path: make(path, ("odd/\x1b[2J", b"x")),
    "bidi": lambda path: make(path, ("odd/\u202egpj.exe", b"x")),
    "long name": lambda path: make(path, ("odd/" + "n" * 300, b"x")),
    "deep": lambda path: make(path, ("odd/" + "d/" * 50 + "a", b"x")),
    "twice": lambda path: patched(make(path, ("odd/a", b"x"), ("odd/b", b"y")), b"odd/b", b"odd/a"),
    "case": lambda path: make(path, ("odd/A", b"x"), ("odd/a", b"y")),
    "case of a folder": lambda path: make(path, ("odd/B/x", b"x"), ("odd/b", b"y")),
    "composed": lambda path: make(path, ("odd/\u00e9", b"x"), ("odd/e\u0301", b"y")),
    "file and folder": lambda path: make(path, ("odd/a", b"x"), ("odd/a/b", b"y")),
    "symbolic link": lambda path: make(path, (info("odd/link", 0o120777), b"/etc/passwd")),
    "device": lambda path: make(path, (info("odd/dev", 0o060644), b"")),
    "bad CRC": lambda path: patched(
        make(path, ("odd/a", b"z" * 9)), zlib.crc32(b"z" * 9).to_bytes(4, "little"), b"\1\2\3\4"
    ),
    "encrypted": encrypted,
    "too many": lambda path: make(path, *((f"odd/{number}", b"") for number in range(5001))),
    "ratio": lambda path: make(path, ("odd/a", b"\0" * 30_000_000)),
    "overlap": overlapping,
    "quoted overlap": quoted_overlap,
    "lying size": lying,
    "zip64": zip64_sentinel,
    "method": lambda path: (zipped(path, zipfile.ZIP_BZIP2), path)[1],
    "no SKILL.md": lambda path: make(path, ("odd/README.md", b"x"), skill=False),
    "two skills": lambda path: make(path, ("other/SKILL.md", HEAD)),
    "no ZIP": lambda path: (path.write_bytes(b"hello" * 10), path)[1],
    "empty": lambda path: (path.write_bytes(b""), path)[1],
    "cut off": lambda path: (
        path.write_bytes(make(path, ("odd/a", os.urandom(999))).read_bytes()[:-200]),
        path,
    )[1],
}


def zipped(path: Path, method: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("odd/SKILL.md", HEAD)
        archive.writestr("odd/a", b"x" * 100, compress_type=method)


def everything(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("build", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives_are_refused_whole(tmp_path: Path, build: Callable[[Path], Path]) -> None:
    path = build(tmp_path / "odd.skill")
    before = everything(tmp_path)
    with pytest.raises(SkillArchiveError, match="refused"):
        extract_skill_file(path)
    assert everything(tmp_path) == before
    assert not [path for path in everything(cache_folder()) if path.is_file() or "partial" in path.name]
    (problem,) = load(path).diagnostics
    assert (problem.code, problem.severity) == ("bad-archive", "error")


@pytest.mark.parametrize("top", ["odd/", ""])
def test_both_layouts(tmp_path: Path, top: str) -> None:
    path = make(
        tmp_path / "download (1).skill", (f"{top}SKILL.md", HEAD), (f"{top}scripts/a.py", b"x"), skill=False
    )
    skill = load_skill_file(path)
    assert (skill.name, skill.source, skill.diagnostics) == ("odd", path, ())
    assert list(skill.resources) == [Path("scripts/a.py")]


def test_executable_bits_are_kept_and_others_are_not(tmp_path: Path) -> None:
    path = make(tmp_path / "odd.skill", (info("odd/run", 0o104755), b"#!"), (info("odd/data", 0o100666), b""))
    folder = extract_skill_file(path)
    assert [(folder / name).stat().st_mode & 0o7777 for name in ("run", "data")] == [0o755, 0o644]


def test_extraction_is_cached_and_repaired(tmp_path: Path) -> None:
    path = make(tmp_path / "odd.skill", ("odd/a", b"x"))
    folder = extract_skill_file(path)
    inode = folder.stat().st_ino
    assert extract_skill_file(path) == folder
    assert folder.stat().st_ino == inode
    (folder / "a").write_bytes(b"y")
    assert (extract_skill_file(path) / "a").read_bytes() == b"x"
    (folder / "extra").write_bytes(b"y")
    assert not (extract_skill_file(path) / "extra").exists()
    assert (cache_folder().stat().st_mode & 0o777) == 0o700


def test_the_same_bytes_under_two_names(tmp_path: Path) -> None:
    head = HEAD.replace(b"odd", b"Not A Name")
    first = extract_skill_file(make(tmp_path / "one.skill", ("SKILL.md", head), skill=False))
    second = extract_skill_file(make(tmp_path / "two.skill", ("SKILL.md", head), skill=False))
    assert (first.name, second.name, first.parent) == ("one", "two", second.parent)
    assert first.exists()


def test_extraction_by_many_at_once(tmp_path: Path) -> None:
    path = make(tmp_path / "odd.skill", *((f"odd/{number}", b"x" * 1000) for number in range(50)))
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(extract_skill_file(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert not [path for path in cache_folder().iterdir() if "partial" in path.name]


def test_pruning_by_age_and_size(tmp_path: Path) -> None:
    homes = []
    for days in (0, 2, 10, 40):
        folder = extract_skill_file(make(tmp_path / f"{days}.skill", (f"odd/{days}", b"x" * 1000)))
        used = time.time() - days * 86400
        os.utime(folder.parent, (used, used))
        homes.append(folder.parent)
    assert prune() == [homes[3]]
    assert prune(max_bytes=2500) == [homes[2]]
    assert prune(max_bytes=0, keep=homes[1]) == []
    assert prune(max_bytes=0) == [homes[1]]
    assert homes[0].exists()


def test_a_missing_archive_and_a_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidSkillStructureError, match="No such file"):
        extract_skill_file(tmp_path / "none.skill")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InvalidSkillStructureError, match="cache"):
        extract_skill_file(make(tmp_path / "odd.skill"))


def test_archives_in_a_folder_are_found(tmp_path: Path) -> None:
    make(tmp_path / "odd.skill")
    write_skill(tmp_path, "csv")
    assert sorted(skill.name for skill in load(tmp_path)) == ["csv", "odd"]


def test_packing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "scripts/run.py": "#!x",
        "__pycache__/a.pyc": "",
        "node_modules/b": "",
        ".DS_Store": "",
        "old.skill": "",
        "c.txt": "c",
    }
    folder = write_skill(tmp_path, "csv", files=files)
    (folder / "link.txt").symlink_to("c.txt")
    monkeypatch.chdir(tmp_path)
    out = pack_skill("csv")
    assert out == tmp_path / "csv.skill"
    with zipfile.ZipFile(out) as archive:
        assert archive.namelist() == ["csv/SKILL.md", "csv/c.txt", "csv/link.txt", "csv/scripts/run.py"]
    assert validate(out) == []
    unpacked = extract_skill_file(out)
    assert (unpacked / "link.txt").read_text() == "c"
    assert os.access(unpacked / "scripts/run.py", os.X_OK)
    first = out.read_bytes()
    os.utime(folder / "c.txt", (1, 1))
    assert pack_skill(folder, tmp_path / "again.zip").read_bytes() == first


def test_packing_refuses_links_that_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = write_skill(tmp_path, "csv")
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidSkillStructureError, match="out of the skill"):
        pack_skill(folder, tmp_path)
    assert not (tmp_path / "csv.skill").exists()
    with pytest.raises(InvalidSkillStructureError, match=r"no SKILL\.md"):
        pack_skill(tmp_path)
