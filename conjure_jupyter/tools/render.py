"""The render_file tool: a document of the working directory as PDF, PNG or PowerPoint."""

from __future__ import annotations

import codecs
import contextlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ArtifactError, InvalidToolInputError, ToolError
from ..rendering import Assets, CitedSource, Format, Job, Rendering, Target, limits, parse_page, render
from ..timeline.logical import source_mentions
from ..wording import size_text
from . import schemas
from .locations import check_path, in_workspace, printable
from .resolving import MISSING_ASSETS, MISSING_SOURCES
from .text import SAMPLE, detect
from .tool import Outcome, ToolEnv

if TYPE_CHECKING:
    from ..artifacts.service import ArtifactService

_FORMATS: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
}
_TARGETS: dict[str, Target] = {".pdf": "pdf", ".png": "png", ".pptx": "pptx"}
_NAMED = 10
_CHARSET = re.compile(rb"""charset\s*=\s*["']?([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Document:
    text: str
    format: Format
    folder: str
    note: str = ""


class RenderFileTool:
    """Renders in a process of its own; images that cannot be had are told, and the rest is rendered.

    Args:
        seconds: a rendering may take.
    """

    name = "render_file"
    read_only = False
    path_fields = ("output",)
    read_fields = ("path",)
    artifact_fields = ("path", "content")

    def __init__(self, *, seconds: float = limits.SECONDS) -> None:
        self._seconds = seconds

    @property
    def definition(self) -> dict[str, Any]:
        """Our schema: the artifact document speaks of rendering tools and gives them none."""
        return schemas.render_file_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Render the document.

        Raises:
            ToolError: it cannot be read or rendered, or the result not be written.
        """
        output, target = self._output(arguments["output"], env)
        page = None
        if arguments.get("page_size"):
            try:
                page = parse_page(arguments["page_size"])
            except ValueError as error:
                raise InvalidToolInputError(self.name, str(error), field="page_size") from None
        document = await self._document(arguments, env)
        notices: list[dict[str, str]] = []
        sources, assets = await _gathered(document, output, env, notices)
        job = Job(
            text=document.text,
            format=document.format,
            target=target,
            folder=document.folder,
            title=arguments.get("title") or None,
            page=page,
            sources=sources,
        )
        made = await render(job, assets, seconds=self._seconds)
        paths = _paths(output, len(made.files))
        for path, data in zip(paths, made.files, strict=True):
            await env.executor.write(path, data, env.context)
        lines = [_told(paths, made, target)]
        notes = [document.note, *map(printable, made.notices), *(notice["text"] for notice in notices)]
        lines += [f"[{note}]" for note in notes if note]
        meta: dict[str, Any] = {"files": paths, "pages": made.pages}
        return Outcome("\n".join(lines), meta=meta | ({"notices": notices} if notices else {}))

    def _output(self, value: str, env: ToolEnv) -> tuple[str, Target]:
        path = in_workspace(check_path(self.name, value), env.context)
        stem, suffix = posixpath.splitext(path or "")
        target = _TARGETS.get(suffix.lower())
        if path is None or not path.startswith("outputs/") or not posixpath.basename(stem):
            raise InvalidToolInputError(
                self.name,
                f"{printable(value)} is not under outputs/; send outputs/report.pdf",
                field="output",
            )
        if target is None or value.endswith("/"):
            raise InvalidToolInputError(
                self.name, f"{printable(value)} must end in .pdf, .png or .pptx", field="output"
            )
        return path, target

    async def _document(self, arguments: dict[str, Any], env: ToolEnv) -> _Document:
        if ("path" in arguments) == ("content" in arguments):
            raise InvalidToolInputError(self.name, "send either path or content", field="path")
        if "path" in arguments:
            return await self._file(arguments["path"], arguments.get("format"), env)
        content: str = arguments["content"]
        if arguments.get("format") is None:
            raise InvalidToolInputError(
                self.name, "content needs format: 'html' or 'markdown'", field="format"
            )
        if not content.strip():
            raise InvalidToolInputError(self.name, "content is empty", field="content")
        _check_size(len(content.encode("utf-8", "replace")), "content")
        return _Document(content, arguments["format"], "")

    async def _file(self, value: str, given: Format | None, env: ToolEnv) -> _Document:
        path = check_path(self.name, value)
        if env.artifacts is not None:
            path = (await env.artifacts.resolve_path(path, write=False, call_id=env.call_id)).path
        form = given or _FORMATS.get(posixpath.splitext(path)[1].lower())
        if form is None:
            raise InvalidToolInputError(
                self.name, f"{printable(value)} ends in neither .html nor .md; send format", field="format"
            )
        # What is rendered is the session's own, as is all that it refers to.
        context = env.context.with_(allowed_paths=())
        data = await env.executor.read(path, context, limit=limits.DOCUMENT + 1)
        _check_size(len(data), value)
        text, note = _decoded(data, value)
        if not text.strip():
            raise ToolError(f"{printable(value)} is empty")
        folder = posixpath.dirname(in_workspace(path, env.context) or "")
        return _Document(text, form, folder, note)


def _check_size(size: int, name: str) -> None:
    if size > limits.DOCUMENT:
        raise ToolError(
            f"{printable(name)} has more than {size_text(limits.DOCUMENT)}; split it, and refer to images "
            "by their path instead of holding them in the text"
        )


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    """The text of a document, and what to say when it is not UTF-8."""
    encoding = detect(data[:SAMPLE], whole=len(data) <= SAMPLE)
    if encoding is None:
        raise ToolError(f"{printable(name)} is no text")
    codec, note = encoding.codec, encoding.note
    if codec == "latin-1":
        codec = _declared(data) or "windows-1252"
        note = f"the document is not UTF-8; read as {codec}"
    data = data[len(encoding.bom) :]
    try:
        return data.decode(codec), note
    except UnicodeDecodeError:
        return data.decode(codec, "replace"), note or "bytes that are no UTF-8 were replaced"


def _declared(data: bytes) -> str | None:
    """The encoding that an HTML document says it has."""
    match = _CHARSET.search(data[:1024])
    try:
        return codecs.lookup(match[1].decode("ascii")).name if match else None
    except LookupError:
        return None


async def _gathered(
    document: _Document, output: str, env: ToolEnv, notices: list[dict[str, str]]
) -> tuple[dict[int, CitedSource], Assets]:
    """What the document cites and refers to, put on disk where it is an artifact."""
    artifacts = env.artifacts
    files: dict[int, str] = {}
    urls: dict[str, str] = {}
    sources: dict[int, CitedSource] = {}
    missing = source_mentions(document.text)
    if artifacts is not None:
        pulled = await artifacts.pull(document.text)
        files, missing = pulled.sources, pulled.missing_sources
        sources = _cited(document.text, artifacts, files)
        urls = await _fetched_before(document.text, artifacts)
        if pulled.missing_assets:
            named = ", ".join(map(printable, pulled.missing_assets[:_NAMED])) + _more(pulled.missing_assets)
            _tell(env, notices, MISSING_ASSETS, f"no artifact has the path {named}: it was left out")
    if missing:
        named = ", ".join(f"[[S:{number}]]" for number in missing[:_NAMED]) + _more(missing)
        _tell(env, notices, MISSING_SOURCES, f"the pool has no source {named}")
    return sources, Assets(
        env.executor,
        env.context,
        # The place of a document that is no file is that of its result.
        folders=() if document.folder else (posixpath.dirname(output),),
        base=document.folder,
        files=files,
        urls=urls,
        artifacts=artifacts,
    )


def _cited(text: str, artifacts: ArtifactService, files: Mapping[int, str]) -> dict[int, CitedSource]:
    found = {}
    for number in source_mentions(text):
        source = artifacts.discovery.source(number)
        if source is not None:
            detail = source.url or source.path
            found[number] = CitedSource(source.title, detail, source.url, number in files)
    return found


async def _fetched_before(text: str, artifacts: ArtifactService) -> dict[str, str]:
    """Files of the sources whose URLs a document has."""
    found = {}
    for source in artifacts.discovery.sources:
        if source.url is not None and source.url in text:
            with contextlib.suppress(ArtifactError):
                found[source.url] = await artifacts.checkout(source.artifact_path)
    return found


def _tell(env: ToolEnv, notices: list[dict[str, str]], code: str, text: str) -> None:
    notices.append({"code": code, "text": text})
    if env.artifacts is not None:
        env.artifacts.notice(text, code)


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""


def _paths(output: str, count: int) -> list[str]:
    if count == 1:
        return [output]
    stem, suffix = posixpath.splitext(output)
    return [f"{stem}-{index}{suffix}" for index in range(1, count + 1)]


def _told(paths: list[str], made: Rendering, target: Target) -> str:
    size = size_text(sum(map(len, made.files)))
    if len(paths) > 1:
        return f"Rendered {printable(paths[0])} to {printable(paths[-1])} ({len(paths)} pages, {size} in all)"
    unit = "slide" if target == "pptx" else "page"
    return f"Rendered {printable(paths[0])} ({made.pages} {unit}{'s'[: made.pages > 1]}, {size})"
