"""What a file is: its content first, its name second."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import wave
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from conjure_jupyter.artifacts.detect import HEAD, content_type

OOXML = "application/vnd.openxmlformats-officedocument."
DOCX, XLSX, PPTX = (
    f"{OOXML}wordprocessingml.document",
    f"{OOXML}spreadsheetml.sheet",
    f"{OOXML}presentationml.presentation",
)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def zipped(*names: str, stored: dict[str, str] | None = None) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (stored or {}).items():
            archive.writestr(zipfile.ZipInfo(name), text)
        for name in names:
            archive.writestr(name, "x" * 100)
    return stream.getvalue()


def picture(form: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (30, 20), (200, 10, 10)).save(stream, form)
    return stream.getvalue()


def sound() -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(200))
    return stream.getvalue()


def tarred() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return stream.getvalue()


def array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(9))
    return stream.getvalue()


def columns(form: str) -> bytes:
    stream = io.BytesIO()
    getattr(pd.DataFrame({"a": [1]}), f"to_{form}")(stream)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["", "x", "x.csv", "x.html"])
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (picture("PNG"), "image/png"),
        (picture("JPEG"), "image/jpeg"),
        (picture("GIF"), "image/gif"),
        (picture("WEBP"), "image/webp"),
        (picture("TIFF"), "image/tiff"),
        (picture("PDF"), "application/pdf"),
        (b"%PDF-1.7\n%text only so far\n", "application/pdf"),
        (array(), "application/x-npy"),
        (columns("parquet"), "application/vnd.apache.parquet"),
        (columns("feather"), "application/vnd.apache.arrow.file"),
        (zipped("a.txt"), "application/zip"),
        (zipped("[Content_Types].xml", "_rels/.rels", "word/document.xml"), DOCX),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), XLSX),
        (columns("excel"), XLSX),
        (zipped("[Content_Types].xml", "ppt/presentation.xml"), PPTX),
        (
            zipped("content.xml", stored={"mimetype": "application/vnd.oasis.opendocument.text"}),
            "application/vnd.oasis.opendocument.text",
        ),
        (gzip.compress(b"hello" * 99, mtime=0), "application/gzip"),
        (bz2.compress(b"hello" * 99), "application/x-bzip2"),
        (lzma.compress(b"hello" * 99), "application/x-xz"),
        (tarred(), "application/x-tar"),
        (sound(), "audio/wav"),
        (b"ID3\x03\0\0\0\0\0\x21" + bytes(99), "audio/mpeg"),
        (b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41" + bytes(99), "video/mp4"),
        (b"\x7fELF\2\1\1" + bytes(60), "application/x-executable"),
    ],
)
def test_binary_content_is_told_whatever_the_name(name: str, data: bytes, kind: str) -> None:
    assert content_type(name, data[:HEAD]) == kind


def test_a_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x") as base:
        base.execute("create table a (b)")
    base.close()
    assert content_type("x", (tmp_path / "x").read_bytes()[:HEAD]) == "application/vnd.sqlite3"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("x.docx", zipped("a.txt"), DOCX),  # which Office format a zip is, the name may say
        ("x.png", zipped("a.txt"), "application/zip"),
        ("x.doc", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99), "application/msword"),
        ("x", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99), "application/x-ole-storage"),
        ("x.bmp", b"BM" + bytes(range(60)), "image/bmp"),
        ("x", b"BM" + bytes(range(60)), "application/octet-stream"),
        ("x.png", b"\0\1\2\3" * 20, "application/octet-stream"),
        ("x.parquet", b"\0\1\2\3" * 20, "application/octet-stream"),
        ("x.csv", b"\0\1\2\3" * 20, "application/octet-stream"),
        ("x", b"\0" * 100, "application/octet-stream"),
        ("x.csv", PNG, "image/png"),
    ],
)
def test_a_name_decides_only_what_the_bytes_leave_open(name: str, data: bytes, kind: str) -> None:
    assert content_type(name, data) == kind


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("x.png", "<!DOCTYPE html><html><script>1</script>", "text/html"),
        ("x.png", "  \n<!-- hello -->\n<HTML>", "text/html"),
        ("x.pdf", "<html>", "text/html"),
        ("x", "<!doctype html>", "text/html"),
        ("x.txt", "<script>alert(1)</script>", "text/html"),
        ("x", "<?xml version='1.0'?><svg xmlns='x'/>", "image/svg+xml"),
        ("x.png", "<svg onload=alert(1)>", "image/svg+xml"),
        ("x.html", "<svg>", "image/svg+xml"),
        ("x.svg", "<svg/>", "image/svg+xml"),
        ("x", "<?xml version='1.0'?><a/>", "application/xml"),
        ("x.md", "<!doctype html> is how a page begins", "text/markdown"),
        ("x.md", "# Title", "text/markdown"),
        ("x.py", "<html>", "text/x-python"),
        ("x.csv", "a,b\n1,2\n", "text/csv"),
        ("x.csv", "one column\nonly\n", "text/csv"),
        ("x.tsv", "a\tb\n", "text/tab-separated-values"),
        ("x.json", '{"a": 1}', "application/json"),
        ("x.ipynb", '{"cells": []}', "application/x-ipynb+json"),
        ("x.yaml", "a: 1", "application/yaml"),
        ("x.log", "a line", "text/plain"),
        ("x.rtf", r"{\rtf1 hello}", "application/rtf"),
        ("x.png", "just text", "text/plain"),
        ("x", '{"a": [1, 2]}', "application/json"),
        ("x", '[{"a": 1},\n {"a": 2}]', "application/json"),
        ("x", '{"a": 1}\n{"a": 2}\n', "application/jsonl"),
        ("x", '{"a": 1, and so on}', "text/plain"),
        ("x", "[1] a reference", "text/plain"),
        ("x", "region,amount,date\nnorth,1,2\nsouth,2,3\n", "text/csv"),
        ("x", "a\tb\n1\t2\n", "text/tab-separated-values"),
        ("x", "Dear Ann, dear Bob,\nsee you, later, there\n", "text/plain"),
        ("x", "One, two, three\nfour, five, six\n", "text/plain"),
        ("x", "#!/usr/bin/env python3\nprint(1)\n", "text/x-python"),
        ("x", "#!/bin/bash\necho\n", "application/x-sh"),
        ("x", "hello", "text/plain"),
    ],
)
def test_text(name: str, text: str, kind: str) -> None:
    assert content_type(name, text.encode()) == kind


def test_text_in_other_encodings() -> None:
    assert content_type("x", '\ufeff{"a": 1}'.encode()) == "application/json"
    assert content_type("x", "<html>größe".encode("utf-16")) == "text/html"
    assert content_type("x.csv", "größe,maß\n".encode("latin-1")) == "text/csv"
    assert content_type("x", "die größe ist angegeben".encode("latin-1")) == "text/plain"


def test_a_head_that_was_cut() -> None:
    text = ("ä" * HEAD).encode()
    assert content_type("x", b"a" + text[: HEAD - 1]) == "text/plain"
    rows = b"region,amount,date\n" + b"north,1,2\n" * HEAD
    assert content_type("x", rows[:HEAD]) == "text/csv"
    assert content_type("x", (b'{"a": [' + b"1, " * HEAD)[:HEAD]) == "application/json"
    assert content_type("x", (b'{"a": 1}\n' * HEAD)[:HEAD]) == "application/jsonl"


@pytest.mark.parametrize(
    ("name", "kind"), [("x.csv", "text/csv"), ("x.png", "image/png"), ("x", "text/plain")]
)
def test_an_empty_file_is_what_its_name_says(name: str, kind: str) -> None:
    assert content_type(name, b"") == kind


@given(st.text(max_size=12), st.binary(max_size=300))
def test_every_file_has_a_type(name: str, data: bytes) -> None:
    kind = content_type(name, data)
    assert kind.count("/") == 1
    assert kind == kind.lower().strip()


@given(st.binary(max_size=60))
def test_what_begins_like_a_page_is_never_told_as_a_picture(tail: bytes) -> None:
    kind = content_type("x.png", b"<!doctype html>" + tail)
    assert not kind.startswith("image/")
