"""Taking secrets out of text before it reaches the model, the log or a saved notebook.

Three kinds are found: tokens whose form is known (a table of issuers' prefixes), values that stand beside
a secret-looking name (``DB_PASSWORD=…``, ``"api_key": "…"``), and the values of this process's own
secret-looking environment variables, whatever their form. Hashes, UUIDs and encoded images stay.

Every pattern starts at a literal and its repeats are possessive or bounded, so the time is linear in the
text, whatever the text is.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping

REDACTED = "[redacted]"

#: A value of an environment variable shorter than this is too likely an ordinary word.
SHORTEST_VALUE = 8

_B64URL = r"[A-Za-z0-9_-]"

# A literal that must occur, then the pattern. Forms as the issuers' secret scanning pages give them.
_TOKENS: tuple[tuple[str, str], ...] = (
    ("sk-ant-", rf"sk-ant-{_B64URL}{{16,}}+"),
    ("sk-", rf"sk-(?:proj|svcacct|admin|None|or-v1|lf)-{_B64URL}{{20,}}+"),
    ("sk-", r"sk-(?=[A-Za-z]{0,40}+\d)[A-Za-z0-9]{32,}+"),
    ("AKIA", r"AKIA[A-Z0-9]{16}"),
    ("ASIA", r"ASIA[A-Z0-9]{16}"),
    ("gh", r"gh[pousr]_[A-Za-z0-9]{36,}+"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{40,}+"),
    ("gl", r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas|ffct)-[A-Za-z0-9_.-]{18,}+"),
    ("xox", r"xox[abcdeoprs]-[A-Za-z0-9-]{10,}+"),
    ("xapp-", r"xapp-[A-Za-z0-9-]{10,}+"),
    ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}+"),
    ("AIza", rf"AIza{_B64URL}{{35}}"),
    ("ya29.", r"ya29\.[A-Za-z0-9_.-]{20,}+"),
    ("GOCSPX-", rf"GOCSPX-{_B64URL}{{28}}"),
    ("hf_", r"hf_[A-Za-z0-9]{30,}+"),
    ("npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-", rf"pypi-{_B64URL}{{50,}}+"),
    ("_live_", r"(?:sk|rk|pk)_live_[A-Za-z0-9]{16,}+"),
    ("_test_", r"(?:sk|rk)_test_[A-Za-z0-9]{16,}+"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{24,}+"),
    ("tsec_", r"tsec_[A-Za-z0-9_-]{30,}+"),
    ("dckr_", rf"dckr_[po]at_{_B64URL}{{20,}}+"),
    ("dop_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    ("SG.", rf"SG\.{_B64URL}{{22}}\.{_B64URL}{{43}}"),
    ("eyJ", rf"eyJ{_B64URL}{{8,}}+\.eyJ{_B64URL}{{8,}}+\.{_B64URL}{{8,}}+"),
)
# In the middle of a longer run of such characters (an encoded image, a hash) it is no token.
_COMPILED = tuple(
    (literal, re.compile(rf"(?<![A-Za-z0-9_+/-])(?:{pattern})(?![A-Za-z0-9+/])"))
    if literal != "hooks.slack.com/"
    else (literal, re.compile(pattern))
    for literal, pattern in _TOKENS
)

_KEYWORD = (
    r"(?:(?:api|access|secret|private|signing|encryption|account|master|service|shared|license)[_-]?key"
    r"|secret|token|passw(?:or)?d|passphrase|(?<=_)pwd|(?<=_)pass|credential)s?"
)
_SECRET_NAME = re.compile(rf"(?:^|.*[_-]|.*[a-z])?{_KEYWORD}(?:_?\d{{1,3}})?", re.IGNORECASE)
# Searched in lower-cased text: a search for literals is ten times as fast as one that ignores case.
_KEYWORD_END = re.compile(r"key|secret|token|passwo?r?d|passphrase|_pwd|_pass(?![wp])|credential")
_KEY_BEFORE = re.compile(
    r"(?:api|access|secret|private|signing|encryption|account|master|service|shared|license)[_-]?$"
)
_VALUE = re.compile(
    r"s?(?:_?\d{1,3})?(?P<between>\\?[\"']?[ \t]{0,8}+(?:=>|:=|[:=])[ \t]{0,8}+)"
    r"(?:(?P<quote>\\?[\"'])(?P<quoted>[^\s\"'\\]{8,512}+)(?P=quote)|(?P<bare>[^\s\"'`;,]{8,64}+))"
)
# The rest of a bare value, of which 64 characters tell whether it is a secret.
_REST = re.compile(r"[^\s\"'`;,]*+")
# Counts and places of secrets are no secrets: MAX_TOKENS, TOKENS_PER_SECOND end otherwise or in "tokens".
_NO_SECRET_NAME = re.compile(
    r"(?:max|min|num|total|input|output|n|cache|prompt|stop|pad|eos|bos|unk|mask|sep|cls)_?tokens?$",
    re.IGNORECASE,
)

_AUTHORIZATION = re.compile(
    r"((?:authorization)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?:(?:bearer|basic|token)[ \t]{1,4})?)"
    r"([^\s\"',;]{8,2048}+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer[ \t]{1,4})([A-Za-z0-9._~+/=-]{20,2048}+)", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(://[^\s/:@\"'<>]{0,128}+:)([^\s/@\"'<>]{1,256}+)(?=@)")
_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
# A key whose end was cut off: lines of encoded bytes, each maybe after a line number, a quote or an escape.
_PEM_BODY = re.compile(r"(?:[\s\"'+,|>]|\\[rn]|\d{1,6}\t|[A-Za-z0-9+/=]{16,}+)*+")
_PEM_LONGEST = 20_000
_ENCODED_RUN = re.compile(r"[A-Za-z0-9+/=]{16}")

_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")
_SIGN = re.compile(r"[^\w\s.-]")
_TEMPLATE = re.compile(r"[{}<>$()]")
_EXPRESSION = re.compile(r"[()\[\]{}<>$]")
_DOTTED_NAME = re.compile(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+")


def redact(text: str) -> str:
    """``text`` with every secret that was recognised replaced by ``[redacted]``."""
    text = _redact_values(text)
    if "PRIVATE KEY" in text:
        text = _redact_pem(text)
    for literal, pattern in _COMPILED:
        if literal in text:
            text = pattern.sub(REDACTED, text)
    if "://" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{REDACTED}", text)
    folded = _fold(text)
    if "bearer" in folded or "authorization" in folded:
        text = _BEARER.sub(_after_label, _AUTHORIZATION.sub(_after_label, text))
        folded = _fold(text)
    return _redact_named(text, folded)


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that its value is a secret: ``API_KEY``, ``DB_PASSWORD``, ``token``."""
    return bool(_SECRET_NAME.fullmatch(name)) and not _NO_SECRET_NAME.search(name)


def secret_values(environ: Mapping[str, str]) -> list[str]:
    """Values of secret-looking variables, the longest first, so that one inside another is no matter."""
    values = {
        value.strip()
        for name, value in environ.items()
        if is_secret_name(name) and len(value.strip()) >= SHORTEST_VALUE
    }
    return sorted(values, key=lambda value: (-len(value), value))


def _redact_values(text: str) -> str:
    for value in secret_values(os.environ):
        if value in text and value not in REDACTED:
            text = text.replace(value, REDACTED)
    return text


def _after_label(match: re.Match[str]) -> str:
    value = match[2]
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    if value[0] in "<{$[" or not (mixed or any(map(str.isdigit, value))):
        return match[0]
    return match[1] + REDACTED


def _redact_named(text: str, folded: str) -> str:
    """Values beside secret-looking names; ``folded`` is the text in lower case, as long as the text."""
    kept: list[str] = []
    position = 0
    for keyword in _KEYWORD_END.finditer(folded):
        match = _VALUE.match(text, keyword.end()) if keyword.start() >= position else None
        if match is None:
            continue
        before = folded[max(0, keyword.start() - 16) : keyword.start()]
        if keyword[0] == "key" and not _KEY_BEFORE.search(before):
            continue
        if keyword[0] == "token" and _NO_SECRET_NAME.search(
            before + folded[keyword.start() : match.start("between")]
        ):
            continue
        group = "quoted" if match["quote"] else "bare"
        value = match[group]
        if group == "quoted":
            secret = _looks_secret(value)
        elif text[keyword.start() : keyword.end()].isupper() and match["between"] == "=":
            secret = _plain_value(value)
        else:
            secret = _looks_random(value)
        if secret:
            kept += [text[position : match.start(group)], REDACTED]
            end = _REST.match(text, match.end(group)) if group == "bare" else None
            position = end.end() if end else match.end(group)
    return "".join(kept) + text[position:]


def _fold(text: str) -> str:
    """Lower case, of the same length: a few letters grow when they are made small."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(c.lower() if c.isascii() else c for c in text)


def _plain_value(value: str) -> bool:
    """Whether what follows ``NAME=`` is a value and not a reference, a call or a placeholder."""
    return value[0] not in "$<{%([*" and "(" not in value and not value.startswith(("os.environ", "your"))


def _looks_secret(value: str) -> bool:
    """Whether a quoted value beside a secret's name is one, and not a word, a field's name or a template."""
    if _TEMPLATE.search(value):
        return False
    kinds = sum(kind.search(value) is not None for kind in (_LOWER, _UPPER, _DIGIT, _SIGN))
    return kinds >= 2 or (len(value) >= 24 and value.isalnum())


def _looks_random(value: str) -> bool:
    """Whether a bare value after a lower-case name is a secret, and not an expression of some code."""
    if not _DIGIT.search(value) or _EXPRESSION.search(value):
        return False
    lower, upper = _LOWER.search(value), _UPPER.search(value)
    return bool(lower or upper) and (bool(lower and upper) or not _DOTTED_NAME.fullmatch(value))


def _redact_pem(text: str) -> str:
    """Private keys between their armour lines; without an end line, as far as lines look like a key."""
    begins = list(_PEM_BEGIN.finditer(text))
    kept: list[str] = []
    position = 0
    for index, begin in enumerate(begins):
        border = begins[index + 1].start() if index + 1 < len(begins) else len(text)
        border = min(border, begin.end() + _PEM_LONGEST)
        end = _PEM_END.search(text, begin.end(), border)
        body = None if end else _PEM_BODY.match(text, begin.end(), border)
        stop = end.start() if end else body.end() if body else begin.end()
        if not _ENCODED_RUN.search(text, begin.end(), stop):
            continue
        if body:
            stop = begin.end() + len(text[begin.end() : stop].rstrip())
        kept += [text[position : begin.start()], REDACTED]
        position = end.end() if end else stop
    return "".join(kept) + text[position:]


class StreamRedactor:
    """Redacts text that arrives in pieces, a line at a time.

    A secret that is split between two pieces is still found, because a line is handed on when it is whole
    (or very long). Lines of a private key are held back until its end.
    """

    #: Characters of a line, or of a key's lines, that are held back at most.
    HELD = 16_384

    def __init__(self, sink: Callable[[str], None]) -> None:
        self._sink = sink
        self._held = ""

    def feed(self, text: str) -> None:
        """Take more text, and hand on what is complete."""
        held = self._held + text
        end = max(held.rfind("\n"), held.rfind("\r")) + 1
        begin = held.rfind("-----BEGIN ")
        if begin >= 0:
            closing = held.find("-----END ", begin)
            if closing < 0 or held.find("\n", closing) < 0:
                end = min(end, begin)
        if len(held) - end > self.HELD:
            end = len(held)
        self._held = held[end:]
        if end:
            self._sink(redact(held[:end]))

    def finish(self) -> None:
        """Hand on what was held back."""
        held, self._held = self._held, ""
        if held:
            self._sink(redact(held))
