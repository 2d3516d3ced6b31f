"""Secrets go, everything else stays, and hostile text takes no longer than other text."""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import conjure_jupyter
from conjure_jupyter.redaction import REDACTED, StreamRedactor, is_secret_name, redact

LETTERS = string.ascii_letters + string.digits


def made_up(size: int, alphabet: str = LETTERS) -> str:
    """Characters without meaning, the same in every run; put together here so that no scanner finds them."""
    return "".join(random.Random(size).choices(alphabet, k=size))


TOKENS = {
    "anthropic": "sk-ant-api03-" + made_up(93, LETTERS + "-_") + "AA",
    "openai project": "sk-proj-" + made_up(80, LETTERS + "-_") + "A",
    "openai": "sk-" + made_up(48),
    "openrouter": "sk-or-v1-" + made_up(64, "0123456789abcdef"),
    "aws id": "AKIA" + made_up(16, string.ascii_uppercase + string.digits),
    "aws session id": "ASIA" + made_up(16, string.ascii_uppercase + string.digits),
    "github": "ghp_" + made_up(36),
    "github app": "ghs_" + made_up(36),
    "github fine": "github_pat_" + made_up(22) + "_" + made_up(59),
    "gitlab": "glpat-" + made_up(20),
    "slack bot": "xoxb-" + "123456789012-123456789012-" + made_up(24),
    "slack app": "xapp-1-A0-" + made_up(20),
    "slack hook": "hooks.slack.com/services/" + "T00000000/B00000000/" + made_up(24),
    "google": "AIza" + made_up(35),
    "google oauth": "ya29." + made_up(60),
    "hugging face": "hf_" + made_up(34),
    "npm": "npm_" + made_up(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + made_up(60),
    "stripe": "sk_live_" + made_up(24),
    "stripe test": "rk_test_" + made_up(24),
    "jwt": "eyJ" + made_up(20) + ".eyJ" + made_up(40) + "." + made_up(43),
    "docker": "dckr_pat_" + made_up(27),
    "sendgrid": "SG." + made_up(22) + "." + made_up(43),
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize(
    "around",
    ["{}", "see {} here", "'{}'", "x={},", "({})", "{}\n", "https://h/?k={}&x=1", "     1\t{}", "[{}]"],
)
def test_a_token_is_found_by_its_form(token: str, around: str) -> None:
    told = redact(around.format(token))
    assert token not in told
    assert token[-12:] not in told
    assert told == around.format(REDACTED)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("API_KEY=abcdefgh", "API_KEY=[redacted]"),
        ("export DB_PASSWORD=correct.horse", "export DB_PASSWORD=[redacted]"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfi", "AWS_SECRET_ACCESS_KEY=[redacted]"),
        ('ACCESS_TOKEN="abcd1234efgh"', 'ACCESS_TOKEN="[redacted]"'),
        ("MY_SECRET_2='s3cret-value'", "MY_SECRET_2='[redacted]'"),
        ('{"api_key": "abcd1234efgh"}', '{"api_key": "[redacted]"}'),
        ('{\\"api_key\\": \\"abcd1234efgh\\"}', '{\\"api_key\\": \\"[redacted]\\"}'),
        ("password: hunter2Hunter2", "password: [redacted]"),
        ("client_secret = 'Zx81-spectrum'", "client_secret = '[redacted]'"),
        ("apiKey: 'abcd1234efgh'", "apiKey: '[redacted]'"),
        ("x-api-key: abcD1234efgh", "x-api-key: [redacted]"),
        ("DB_PASS=correct.horse", "DB_PASS=[redacted]"),
        ("TOKEN=aaaabbbb\nNAME=x", "TOKEN=[redacted]\nNAME=x"),
        ("Authorization: Bearer abc123def456ghi", "Authorization: Bearer [redacted]"),
        ("authorization: Basic dXNlcjpwYXNzMTIz", "authorization: Basic [redacted]"),
        ('-H "Authorization: token abc123def456"', '-H "Authorization: token [redacted]"'),
        ("{'Authorization': 'Bearer abc123def456'}", "{'Authorization': 'Bearer [redacted]'}"),
        ("curl bearer abcdefghij0123456789", "curl bearer [redacted]"),
        ("postgres://me:pa55@db:5432/x", "postgres://me:[redacted]@db:5432/x"),
        ("https://user:a%20b@host", "https://user:[redacted]@host"),
        ("redis://:pa55@cache", "redis://:[redacted]@cache"),
    ],
)
def test_a_value_beside_a_name_or_label_goes(text: str, told: str) -> None:
    assert redact(text) == told
    assert redact(told) == told


ORDINARY = [
    hashlib.sha256(b"x").hexdigest(),
    hashlib.sha1(b"x").hexdigest(),
    hashlib.md5(b"x").hexdigest(),
    "sha256:" + hashlib.sha256(b"x").hexdigest(),
    "sha512-" + base64.b64encode(hashlib.sha512(b"x").digest()).decode(),
    str(uuid.UUID(int=2**100 + 7)),
    "commit 1b2c3d4e5f60718293a4b5c6d7e8f90123456789",
    "data:image/png;base64," + base64.b64encode(random.Random(1).randbytes(20_000)).decode(),
    base64.urlsafe_b64encode(random.Random(2).randbytes(20_000)).decode(),
    "token = tokenizer.next_token()",
    "token: str = Field(default=None)",
    "password = getpass.getpass('Password: ')",
    "password=password, api_key=settings.api_key",
    "api_key = os.environ['API_KEY']",
    "API_KEY=$OTHER_KEY",
    "API_KEY=${API_KEY:-none}",
    "API_KEY=<your key>",
    "API_KEY=your-key-here",
    "API_KEY=os.environ['X']",
    "TOKEN=$(cat file)",
    "max_tokens=32000000",
    "MAX_TOKENS=320000000",
    '{"input_tokens": "123456789a"}',
    '"token": "identifier"',
    '"secret": "{{ secret_name }}"',
    "def secret_key(self) -> bytes:",
    "if token == 'left_parenthesis':",
    "key=lambda row: row.name2",
    "monkey = 'Banana123x'",
    "for key in sorted(keys): print(key)",
    "primary_key: id_0123456",
    "the password: it is hidden",
    "PWD=/home/me/project1",
    "sk-learn and sk-fading-circle-and-more-words-here",
    "desk-abcdefghijklmnopqrstuvwxyz0123456789abcd",
    "http://localhost:8888/lab?x=1",
    "http://host/a:b@c",
    "git@github.com:owner/name.git",
    "mail me@example.org or you@example.org",
    "eyJust.a.sentence",
    "ghp_short hf_short npm_short AKIA_SHORT",
    "bearer of bad news, bearers of gold",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE\n-----END CERTIFICATE-----",
    "if '-----BEGIN PRIVATE KEY-----' in text: raise",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n-----END PUBLIC KEY-----",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


def test_this_package_reads_the_same_redacted() -> None:
    for path in Path(conjure_jupyter.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert redact(text) == text, path


KEY = "\n".join(made_up(64, LETTERS + "+/") for _ in range(20)) + "\nabc12="


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_goes_whole(kind: str) -> None:
    pem = f"-----BEGIN {kind}PRIVATE KEY-----\n{KEY}\n-----END {kind}PRIVATE KEY-----"
    assert redact(f"before\n{pem}\nafter") == f"before\n{REDACTED}\nafter"
    numbered = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(pem.split("\n"), 1))
    assert KEY[:20] not in redact(numbered)
    assert KEY[-70:-40] not in redact(numbered)
    escaped = '{"key": "' + pem.replace("\n", "\\n") + '", "id": 1}'
    assert redact(escaped) == '{"key": "' + REDACTED + '", "id": 1}'
    headers = pem.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\n\n", 1)
    assert redact(headers) == REDACTED


def test_a_private_key_whose_end_was_cut_goes_too() -> None:
    pem = "-----BEGIN RSA PRIVATE KEY-----\n" + KEY[:-7]
    assert redact(f"{pem}\n[… cut …]\nplain words follow") == f"{REDACTED}\n[… cut …]\nplain words follow"
    two = f"{pem}\n-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\nend"
    assert redact(two) == f"{REDACTED}\n{REDACTED}\nend"


def test_values_of_the_environment_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "plain looking words")
    monkeypatch.setenv("OTHER_PASSWORD", "words")
    monkeypatch.setenv("LONGER_SECRET", "plain looking words and more")
    monkeypatch.setenv("EDITOR", "some-editor-name")
    assert redact("x plain looking words y") == f"x {REDACTED} y"
    assert redact("x plain looking words and more y") == f"x {REDACTED} y"
    assert redact("words and some-editor-name") == "words and some-editor-name"


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "DB_PASSWORD",
        "TOKEN",
        "MY_PASSWD",
        "apiKey",
        "MYSQL_PWD",
        "CLIENT_SECRET_2",
        "GOOGLE_CREDENTIALS",
        "SSH_PASSPHRASE",
        "JPY_API_TOKEN",
    ],
)
def test_names_that_say_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PWD",
        "OLDPWD",
        "HOME",
        "KEYBOARD",
        "MAX_TOKENS",
        "TOKENIZERS_PARALLELISM",
        "SSH_AUTH_SOCK",
        "KEY",
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret_name(name)


HOSTILE = [
    *(
        "eyJ",
        "eyJaaaaaaaa.",
        "API_KEY=",
        "token: ",
        "token        ",
        "sk-",
        "ghp_",
        "a",
        "a1",
        "x_pass=",
        "x_pass:",
    ),
    *(
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----" + "A" * 40,
        "://a:",
        "bearer ",
    ),
    *(
        "authorization: bearer ",
        "hooks.slack.com/services/",
        "=",
        '"',
        " ",
        "1\t",
        'secret="' + "a" * 300,
        "\u0130",
    ),
]


@pytest.mark.parametrize("unit", HOSTILE, ids=lambda unit: unit[:16].encode().hex())
def test_hostile_text_is_done_at_once(unit: str) -> None:
    """With time that grows with the square of the text this would not end within a day."""
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    assert len(redact(text)) < len(text) * 2


pieces = st.lists(
    st.sampled_from(
        [
            "API_KEY",
            "token",
            "=",
            ": ",
            '"',
            "'",
            "\\",
            "a1B2c3D4",
            "://",
            ":",
            "@",
            "bearer ",
            "\n",
            " ",
            "é",
            "İ",
            KEY,
            *(f" {token} " for token in TOKENS.values()),
            "-----BEGIN PRIVATE KEY-----\n",
            "-----END PRIVATE KEY-----",
        ]
    ),
    max_size=12,
)


@given(pieces.map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(st.characters()))
def test_any_text_can_be_redacted(text: str) -> None:
    assert isinstance(redact(text), str)


@given(st.lists(st.integers(1, 60), min_size=1), st.sampled_from(sorted(TOKENS)))
def test_a_secret_split_over_pieces_is_found(sizes: list[int], name: str) -> None:
    text = (
        f"line one\nkey {TOKENS[name]}\n-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\nlast"
    )
    heard: list[str] = []
    stream = StreamRedactor(heard.append)
    at, turn = 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        stream.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    stream.finish()
    assert "".join(heard) == f"line one\nkey {REDACTED}\n{REDACTED}\nlast"


def test_lines_are_handed_on_when_they_are_whole() -> None:
    heard: list[str] = []
    stream = StreamRedactor(heard.append)
    stream.feed("10%\r")
    stream.feed("20%\rdone\nnext")
    assert "".join(heard) == "10%\r20%\rdone\n"
    stream.feed("x" * 20_000)
    assert "".join(heard).endswith("xxx")  # memory is bounded
    stream.finish()
    stream.finish()
    assert "".join(heard) == "10%\r20%\rdone\nnext" + "x" * 20_000
