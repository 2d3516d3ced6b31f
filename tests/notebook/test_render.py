from __future__ import annotations

from pathlib import Path
from typing import Any

import html5lib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conjure_jupyter.conversation import Reply, ToolRecord
from conjure_jupyter.notebook import render
from conjure_jupyter.notebook.markdown import html, markdown
from conjure_jupyter.notebook.record import Record
from conjure_jupyter.notebook.render import Style, bundle, live
from conjure_jupyter.notebook.visible import visible
from conjure_jupyter.types import (
    AnswerDiscarded,
    FileRef,
    Notice,
    RequestStarted,
    TextDelta,
    ToolCall,
    ToolFinished,
    ToolInputDelta,
    ToolOutput,
    ToolResult,
    ToolStarted,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    '<link rel="stylesheet" href="//evil">',
    "<style>* { content: 'x'; display: none }</style>",
    '<svg onload="alert(1)"><script>1</script></svg>',
    '<a href="javascript:alert(1)">x</a>',
    '<button data-commandlinker-command="notebook:run" data-commandlinker-args="{}">x</button>',
    '<form action="https://evil"><input name="body" id="jupyter-config-data"></form>',
    '<img name="getElementById"><a id="main">',
    "</summary></details></code></pre><script>1</script>",
    "<textarea><noscript><xmp><noembed></textarea><img src=x onerror=1>",
    "</script><script>1</script>",
    "--><script>1</script><!--",
    "<![CDATA[<script>1</script>]]>",
    '" onmouseover="alert(1)" x="',
    "' onmouseover='alert(1)' x='",
    "`<script>1</script>`",
    "```html onmouseover=alert(1)\n<script>1</script>\n```",
    "~~~\n```\n~~~\n<script>1</script>\n```\n<script>1</script>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](java&Tab;script:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4x)",
    "[x](//evil/path)",
    "[x](\\\\evil)",
    "[x](<javascript:alert(1)>)",
    "[x]: javascript:alert(1)\n\n[x]",
    "> [x]: javascript:alert(1)\n\n[x][x]",
    "[^1]: <script>1</script>",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    '![x](https://evil/?q=secret "onerror=alert(1)")',
    '[x](https://ok/"onmouseover="alert(1))',
    '[x](https://ok "title\\" onmouseover=alert(1)")',
    "| a |\n|---|\n| <script>1</script> |",
    "\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07",
    "\x1b[2J\x1b[31mred",
    "safe\u202egpj.exe",
    "pass\u200bword\u2066\ufeff",
    '=HYPERLINK("http://evil")',
    "a\x00b\ud800c",
]

ELEMENTS = {
    "html",
    "head",
    "body",
    "div",
    "p",
    "pre",
    "code",
    "details",
    "summary",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "strong",
    "em",
    "s",
    "small",
    "a",
    "ul",
    "ol",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "br",
    "hr",
}
ATTRIBUTES = {
    "details": {"open"},
    "th": {"align"},
    "td": {"align"},
    "a": {"href", "rel", "title"},
    "ol": {"start"},
}


def check_html(text: str) -> None:
    """Every element and attribute is one of a short list, every link leads to the web."""
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
    for element in parser.parse(text).iter():
        assert isinstance(element.tag, str), "a comment"
        assert element.tag in ELEMENTS, element.tag
        assert set(element.attrib) <= ATTRIBUTES.get(element.tag, set()), element.attrib
        if element.tag == "a":
            assert element.attrib["href"].lower().startswith(("http://", "https://", "mailto:"))
    assert text.isprintable() or all(char.isprintable() or char in "\n\t\u200d\u200c" for char in text)


def check_markdown(text: str) -> None:
    """A front end that renders HTML in Markdown, and any link in it, shows nothing but the short list."""
    permissive = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    permissive.validateLink = lambda url: True  # type: ignore[method-assign]  # the worst front end there is
    for element in _elements(permissive.render(text)):
        assert element.tag in ELEMENTS, (element.tag, text)
        assert set(element.attrib) <= {"href", "class", "style", "start"}, element.attrib
        assert "href" not in element.attrib or element.attrib["href"].startswith(("http", "mailto:"))


def _elements(text: str) -> list[Any]:
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
    return list(parser.parse(text).iter())


def everywhere(text: str) -> Reply:
    """A reply that says ``text`` in every place there is."""
    call = ToolCall("toolu_1", text, {"command": text, text: text})
    edit = ToolCall("toolu_2", "str_replace", {"path": text, "old_str": text, "new_str": text})
    return Reply(
        text=text,
        files=(FileRef(f"outputs/{text}", 3, text, "0"),),
        tool_calls=(
            ToolRecord(call, ToolResult("toolu_1", text, is_error=True, meta={"notices": [{"text": text}]})),
            ToolRecord(edit, ToolResult("toolu_2", [{"type": "text", "text": text}])),
        ),
        stop_reason=text,
        error=text,
        model=text,
        notices=(text,),
        messages=({"role": "assistant", "content": [{"type": "text", "text": text}]},),
    )


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("style", [Style(), Style(raw=True), Style(headless=True, places={"/home/me": "~"})])
def test_nothing_said_anywhere_becomes_active(text: str, style: Style) -> None:
    made = bundle(everywhere(text), style)
    check_html(made["text/html"])
    check_markdown(made["text/markdown"])
    assert "\x1b" not in made["text/plain"] + str(made[render.MIME]["files"])
    made["text/plain"].encode()


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_said_becomes_active_while_it_streams(text: str) -> None:
    record = Record()
    call = ToolCall("1", text, {"command": text})
    for event in (
        RequestStarted(1, 1),
        *(TextDelta(1, char) for char in text),
        ToolInputDelta(1, "1", text, 10),
        ToolStarted(1, call),
        ToolOutput(1, "1", text),
        Notice(1, text),
    ):
        record.hear(event)
        check_html(live(record)["text/html"])


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet=st.sampled_from(list("<>&\"'`~[]()!\\:/\n #|-*_ jahtpscript=x1\x1b\u202e")), max_size=80)
)
def test_no_mixture_becomes_active(text: str) -> None:
    check_html(html(text))
    check_markdown(markdown(text))


def test_markdown_means_what_it_meant() -> None:
    shown = html("# T\n\n| a | b |\n|:-|-:|\n| **1** | `2` |\n\n[d](https://d.org/a)\n\n```py\nx < 1\n```")
    for part in (
        "<h1>T</h1>",
        '<th align="right">b</th>',
        "<strong>1</strong>",
        '<a href="https://d.org/a" rel="noopener noreferrer nofollow">d</a>',
        "<pre><code>x &lt; 1\n</code></pre>",
    ):
        assert part in shown
    kept = markdown("A [d](https://d.org/a) and\n\n```py\nif x < 1: y[0]\n```\n")
    assert "[d](https://d.org/a)" in kept
    assert "if x < 1: y[0]" in kept


def test_failures_are_open_and_the_rest_is_folded() -> None:
    def record(number: int, failed: bool) -> ToolRecord:
        meta = {"exit_code": 2} if failed else {}
        call = ToolCall(str(number), "bash_tool", {"command": f"run {number}"})
        return ToolRecord(call, ToolResult(str(number), "said", is_error=failed, meta=meta))

    shown = bundle(Reply("", tool_calls=(record(1, False), record(2, True))))["text/html"]
    assert "<details><summary>✓ bash_tool <code>run 1</code></summary>" in shown
    assert "<details open><summary>✗ bash_tool <code>run 2</code> (exit code 2)</summary>" in shown


def test_files_tell_their_version_and_calls_what_was_changed_of_them() -> None:
    notice = {"code": "path_rewritten", "text": "It was written to outputs/<b>a</b>.txt"}
    call = ToolCall("1", "create_file", {"path": "turn_0001/files/a.txt", "file_text": "x"})
    wrote = ToolRecord(call, ToolResult("1", "written", meta={"notices": [notice, "odd", {"code": "x"}]}))
    files = (
        FileRef("outputs/a.txt", 1, "text/plain", "0", version=1),
        FileRef("outputs/b.bin", 2048, "application/zip", "", version=0),
    )
    made = bundle(Reply("", files, (wrote,)))
    check_html(made["text/html"])
    check_markdown(made["text/markdown"])
    assert "<p><em>It was written to outputs/&lt;b&gt;a&lt;/b&gt;.txt</em></p>" in made["text/html"]
    assert "\n    [It was written to outputs/<b>a</b>.txt]\n" in made["text/plain"]
    for form in ("text/html", "text/plain", "text/markdown"):
        assert "text/plain, 1 B, v1" in made[form]
    assert "(application/zip, 2.0 KB, v0, too large to be kept)" in made["text/plain"]
    assert [(file["version"], file["kept"]) for file in made[render.MIME]["files"]] == [(1, True), (0, False)]


def test_everything_is_bounded() -> None:
    calls = tuple(
        ToolRecord(
            ToolCall(str(n), "bash_tool", {"command": "x" * 100_000}), ToolResult(str(n), "y" * 1_000_000)
        )
        for n in range(250)
    )
    files = tuple(FileRef(f"outputs/{n}", 1, "text/plain", "0") for n in range(1_000))
    made = bundle(Reply("z" * 1_000_000, files, calls))
    assert len(made["text/html"]) < 4_000_000
    assert "tool calls before are left out" in made["text/html"]
    assert "900 more files" in made["text/html"]
    record = Record()
    record.hear(RequestStarted(1, 1))
    record.hear(TextDelta(1, "word " * 100_000 + "\n\nthe end"))
    assert len(live(record)["text/html"]) < 20_000
    assert "the end" in live(record)["text/html"]


def test_headless_records_depend_on_nothing_but_what_was_said() -> None:
    def said(session: str, call: str, duration: float, home: str) -> dict[str, Any]:
        result = ToolResult(call, f"{home}/work/a.txt", meta={"duration": duration})
        record = ToolRecord(ToolCall(call, "view", {"path": f"{home}/work/a.txt"}), result)
        reply = Reply(f"See {home}/work.", tool_calls=(record,), session_id=session, duration=duration)
        return bundle(reply, Style(headless=True, places={f"{home}/work": ".", home: "~"}))

    first, second = said("s1", "t1", 1.0, "/home/a"), said("s2", "t2", 2.0, "/Users/bee")
    assert first == second
    assert "See ." in first["text/plain"]


def test_an_answer_that_broke_off_is_taken_back() -> None:
    record = Record()
    for event in (
        RequestStarted(1, 1),
        TextDelta(1, "first try"),
        ToolInputDelta(1, "a", "view", 3),
        Notice(1, "told"),
        AnswerDiscarded(1),
        RequestStarted(1, 1),
        TextDelta(1, "second"),
        ToolStarted(1, ToolCall("b", "view", {"path": "x"})),
        ToolFinished(1, ToolCall("b", "view", {"path": "x"}), ToolResult("b", "seen")),
    ):
        record.hear(event)
    shown = live(record)["text/plain"]
    assert "first try" not in shown
    assert shown.splitlines() == ["[told]", "second", "✓ view: x"]


def test_images_are_known_by_their_bytes(tmp_path: Path) -> None:
    def ref(name: str, data: bytes, kind: str) -> FileRef:
        path = tmp_path / name
        path.write_bytes(data)
        return FileRef(f"outputs/{name}", len(data), kind, "0", local_path=path)

    png = b"\x89PNG\r\n\x1a\n" + b"0" * 20
    files = (
        ref("chart.png", png, "image/png"),
        ref("fake.png", b"<svg onload=alert(1)>", "image/png"),
        ref("x.svg", b"<svg onload=alert(1)>", "image/svg+xml"),
        ref("gone.png", png, "image/png"),
    )
    (tmp_path / "gone.png").unlink()
    shown = list(render.images(Reply("", files=files)))
    assert [set(data) for data in shown] == [{"image/png", "text/plain"}]
    assert shown[0]["text/plain"] == "outputs/chart.png"


def test_hidden_characters_are_written_out() -> None:
    assert visible("a\x1b[31mb\x1b[0m\u202ec\u200b") == "ab\\u202ec\\u200b"
    assert (
        visible("family 👨\u200d👩 and नी\u200cत, not a\u200db")
        == "family 👨\u200d👩 and नी\u200cत, not a\\u200db"
    )
    assert visible("x\r\ny\rz\t") == "x\ny\nz\t"
    assert visible("\x1b]0;never ended\nnext") == "\nnext"
