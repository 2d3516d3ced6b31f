"""The name of a fetched file, from servers and URLs that mean well and others that do not."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.artifacts.fetch.download_names import MAX_BYTES, download_name, media_type


@pytest.mark.parametrize(
    ("disposition", "paths", "kind", "name"),
    [
        ("", ["/data/sales.csv"], "text/csv", "sales.csv"),
        ("", ["/data/sales.csv?x=/y.txt"], "text/csv", "sales.csv"),
        ("", ["/a%20b%2Fc.csv"], "text/csv", "c.csv"),
        ("", ["/report"], "application/pdf", "report.pdf"),
        ("", ["/"], "text/html", "download.html"),
        ("", ["/"], "", "download"),
        ("", ["/blob/3f9a", "/sales.csv"], "text/csv", "sales.csv"),
        ("", ["/v1.2"], "application/json", "v1.2.json"),
        ("", ["/data.parquet"], "application/octet-stream", "data.parquet"),
        ("", ["/archive.tar.gz"], "application/gzip", "archive.tar.gz"),
        ("", ["/song.mp3"], "audio/mpeg", "song.mp3"),
        ("", ["/x.7z"], "application/octet-stream", "x.7z"),
        ('attachment; filename="sales 2024.csv"', ["/x"], "text/csv", "sales 2024.csv"),
        ("attachment; filename=sales.csv", ["/x"], "text/csv", "sales.csv"),
        ("attachment; filename=sales", ["/x.bin"], "text/csv", "sales.csv"),
        ("attachment; filename*=UTF-8''caf%C3%A9.csv", ["/x"], "text/csv", "caf\u00e9.csv"),
        ("inline", ["/x.csv"], "text/csv", "x.csv"),
        ('attachment; filename="../../etc/passwd"', ["/x"], "text/plain", "passwd.txt"),
        ('attachment; filename="..\\\\..\\\\boot.ini"', ["/x"], "text/plain", "boot.ini"),
        ('attachment; filename="/root/.ssh/authorized_keys"', ["/x"], "", "authorized_keys"),
        ('attachment; filename=".bashrc"', ["/x"], "", "bashrc"),
        ('attachment; filename="-rf"', ["/x"], "", "rf"),
        ('attachment; filename=".."', ["/x.csv"], "", "x.csv"),
        ("attachment; filename*=UTF-8''a%00b%0a%1b.csv", ["/x"], "text/csv", "ab.csv"),
        ("attachment; filename*=UTF-8''cod%E2%80%AEfdp.exe", ["/x"], "", "codfdp.exe"),
        ('attachment; filename="a<b>:c|d?.csv"', ["/x"], "text/csv", "a_b__c_d_.csv"),
        ("attachment; filename*=no-such-code''x.csv", ["/y.csv"], "text/csv", "x.csv"),
    ],
)
def test_a_name(disposition: str, paths: list[str], kind: str, name: str) -> None:
    assert download_name(disposition, paths, kind) == name


def test_a_long_name_keeps_its_extension() -> None:
    name = download_name("", ["/" + "\u00e4" * 300 + ".csv"], "text/csv")
    assert len(name.encode()) <= MAX_BYTES
    assert name.endswith("\u00e4.csv")
    assert len(download_name("", ["/" + "a." + "b" * 300], "").encode()) <= MAX_BYTES


@given(
    st.text(max_size=300) | st.text(max_size=300).map('attachment; filename="{}"'.format)
    | st.text(max_size=80).map("attachment; filename*=utf-8''{}".format),
    st.text(max_size=300),
    st.text(max_size=20),
)  # fmt: skip
def test_any_header_and_path_give_a_safe_name(disposition: str, path: str, kind: str) -> None:
    name = download_name(disposition, [path], media_type(kind))
    assert name
    assert not set(name) & set('/\\<>:"|?*')
    assert name[0] not in ".-~ "
    assert not any(unicodedata.category(char)[0] == "C" for char in name)
    assert len(name.encode("utf-8")) <= 255


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("text/csv; charset=utf-8", "text/csv"),
        ("Text/HTML", "text/html"),
        ("application/vnd.ms-excel", "application/vnd.ms-excel"),
        ("", "application/octet-stream"),
        ("nonsense", "application/octet-stream"),
        ('text/<script>"', "application/octet-stream"),
    ],
)
def test_a_media_type(header: str, kind: str) -> None:
    assert media_type(header) == kind
