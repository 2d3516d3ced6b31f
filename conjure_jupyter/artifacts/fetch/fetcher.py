"""Fetching a URL: every hop checked, the content bounded, and kept for a while."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import ssl
import tempfile
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConjureError, FetchBlockedError, FetchError
from ...paths import tool_error
from .cache import FetchCache
from .connecting import get
from .download_names import download_name, media_type
from .entries import Entry
from .flights import Flights
from .policy import MAX_REDIRECTS, FetchPolicy
from .receiving import receive
from .resolving import Resolve, checked_addresses, system_resolve
from .urls import URL, check_url, join

if TYPE_CHECKING:
    import httpx2

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Fetched:
    """The content of a URL. While this object lives, its fetcher keeps the file.

    Attributes:
        url: what was asked for, without its fragment.
        final_url: where redirects led. It may carry a signature that gives access; it is not for showing.
        path: the bytes, in a file that is only to be read, by its owner alone.
        content_type: media type without parameters, as the server says.
        size: bytes.
        sha256: digest of the bytes, in hexadecimal.
        etag: the server's, or nothing.
        name: a file name with an extension, safe in any folder.
    """

    url: str
    final_url: str
    path: Path
    content_type: str
    size: int
    sha256: str
    etag: str
    name: str


class Fetcher:
    """Fetches URLs within a policy and keeps what it fetched. Used from one event loop.

    Args:
        policy: the rules.
        cache: folder of what is kept; None takes a temporary one that goes with :meth:`close`.
        resolve: looks names up; the system does by default.
        context: decides which certificates are good; the system's authorities do by default.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        cache: Path | None = None,
        *,
        resolve: Resolve = system_resolve,
        context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._policy = policy
        self._folder = cache
        self._remove: Callable[[], object] | None = None
        self._resolve = resolve
        self._context = context
        self._clock = clock
        self._flights: Flights[Fetched] = Flights()
        self._given: list[weakref.ref[Fetched]] = []
        self._unkept: set[Path] = set()

    async def fetch(self, url: str) -> Fetched:
        """The content of a URL, from the cache when it is young enough.

        Calls for one URL at the same time make one request.

        Raises:
            FetchBlockedError: the URL, or one that it redirects to, may not be fetched; says why.
            FetchError: there was no answer in time, or none that can be used.
            ArtifactTooLargeError: the content is larger than ``url_max_size``.
            ToolError: the content cannot be written to disk.
        """
        asked = check_url(url, self._policy)
        try:
            return await self._flights.join(str(asked), lambda: self._bounded(asked))
        except OSError as error:
            if isinstance(error, ConjureError):
                raise
            raise tool_error(error, "the cache of fetched URLs") from error

    async def close(self) -> None:
        """End what is being fetched and remove what may not be kept."""
        await self._flights.close()
        for path in self._unkept:
            path.unlink(missing_ok=True)
        self._unkept.clear()
        if self._remove is not None:
            await asyncio.to_thread(self._remove)
            self._folder = self._remove = None

    def _cache(self) -> FetchCache:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="conjure-fetch-"))
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return FetchCache(self._folder, self._policy.cache_size)

    async def _bounded(self, asked: URL) -> Fetched:
        try:
            async with asyncio.timeout(self._policy.timeout):
                return await self._from_cache_or_network(asked)
        except TimeoutError as error:
            reason = f"it took longer than {self._policy.timeout:g} s (url_timeout)"
            raise FetchError(str(asked), reason) from error

    async def _from_cache_or_network(self, asked: URL) -> Fetched:
        cache = self._cache()
        entry = await asyncio.to_thread(cache.find, str(asked))
        if entry is not None and not self._allowed(entry):
            entry = None
        if entry is not None and entry.fresh(self._clock(), self._policy.cache_ttl):
            return self._give(entry, cache.use(entry))
        hops = [asked]
        while len(hops) <= MAX_REDIRECTS + 1:
            found = await self._hop(hops, entry, cache)
            if isinstance(found, Fetched):
                return found
            hops.append(found)
        raise FetchError(str(asked), f"it redirects more than {MAX_REDIRECTS} times")

    def _allowed(self, entry: Entry) -> bool:
        """Whether an entry may be used by the rules of now; it may have been fetched by others."""
        if entry.size > self._policy.max_size:
            return False
        try:
            for hop in entry.hops:
                check_url(hop, self._policy)
        except FetchBlockedError:
            return False
        return True

    async def _hop(self, hops: list[URL], entry: Entry | None, cache: FetchCache) -> Fetched | URL:
        """Ask the last of the hops: its content, or the checked URL that it redirects to."""
        url = hops[-1]
        # What the server is asked to compare is of the place it came from, and not for anyone else to see.
        asking = entry if entry is not None and entry.hops[-1] == str(url) else None
        try:
            addresses = await checked_addresses(url, self._policy, self._resolve)
            headers = asking.validators() if asking else {}
            async with get(url, addresses, await self._tls(), headers) as response:
                if response.status_code in _REDIRECTS:
                    return self._redirected(url, response)
                if response.status_code == 304 and headers and asking:
                    return await self._unchanged(asking, response, cache)
                return await self._new(hops, response, cache)
        except FetchError as error:
            if len(hops) == 1:
                raise
            # Where a redirect leads may hold a signature; what was asked for is what the caller knows.
            reason = f"it redirects to {url.host.name}, but {error.reason}"
            raise type(error)(str(hops[0]), reason, status=error.status) from error.__cause__

    def _redirected(self, url: URL, response: httpx2.Response) -> URL:
        places = response.headers.get_list("location")
        if len(places) != 1 or not places[0]:
            raise FetchError(str(url), "it redirects without saying where to", status=response.status_code)
        try:
            target = check_url(join(url, places[0]), self._policy)
        except FetchBlockedError as error:
            reason = f"it redirects to where it may not: {error.reason}"
            raise FetchBlockedError(str(url), reason) from None
        if url.scheme == "https" and target.scheme != "https":
            raise FetchBlockedError(str(url), "it redirects from https to http, which anyone can read")
        return target

    async def _new(self, hops: list[URL], response: httpx2.Response, cache: FetchCache) -> Fetched:
        if response.status_code != 200:
            reason = f"the server answered {response.status_code}"
            raise FetchError(str(hops[-1]), reason, status=response.status_code)
        begun = await asyncio.to_thread(cache.begin)
        try:
            sink = await receive(response, hops[0], begun, self._policy.max_size)
            directives = _directives(response)
            content_type = media_type(response.headers.get("content-type", ""))
            entry = Entry(
                url=str(hops[0]),
                hops=tuple(map(str, hops)),
                sha256=sink.sha256,
                size=sink.size,
                content_type=content_type,
                name=download_name(
                    response.headers.get("content-disposition", ""),
                    (hops[-1].target, hops[0].target),
                    content_type,
                ),
                etag=response.headers.get("etag", ""),
                last_modified=response.headers.get("last-modified", ""),
                fetched=self._clock(),
                ask="no-cache" in directives,
            )
            reuse = "no-store" not in directives
            path = cache.path(entry)
            if not reuse:
                self._unkept.add(path)
            await asyncio.to_thread(cache.keep, entry, begun, reuse=reuse, held=self._held())
        finally:
            cache.discard(begun)
        return self._give(entry, path)

    async def _unchanged(self, entry: Entry, response: httpx2.Response, cache: FetchCache) -> Fetched:
        directives = _directives(response)
        entry = dataclasses.replace(
            entry,
            etag=response.headers.get("etag", entry.etag),
            last_modified=response.headers.get("last-modified", entry.last_modified),
            fetched=self._clock(),
            ask="no-cache" in directives,
        )
        if "no-store" in directives:
            await asyncio.to_thread(cache.forget, entry.url)
            self._unkept.add(cache.path(entry))
        else:
            await asyncio.to_thread(cache.note, entry)
        return self._give(entry, cache.use(entry))

    def _give(self, entry: Entry, path: Path) -> Fetched:
        fetched = Fetched(
            url=entry.url,
            final_url=entry.hops[-1],
            path=path,
            content_type=entry.content_type,
            size=entry.size,
            sha256=entry.sha256,
            etag=entry.etag,
            name=entry.name,
        )
        self._given.append(weakref.ref(fetched))
        return fetched

    def _held(self) -> set[Path]:
        """The files that somebody may still read."""
        self._given = [each for each in self._given if each() is not None]
        return {fetched.path for each in self._given if (fetched := each()) is not None}

    async def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            import httpx2

            self._context = await asyncio.to_thread(httpx2.create_ssl_context)
        return self._context


def _directives(response: httpx2.Response) -> set[str]:
    """The names in ``Cache-Control``. Only those that forbid are heeded: how long is the user's setting."""
    header = ",".join(response.headers.get_list("cache-control"))
    return {part.partition("=")[0].strip().lower() for part in header.split(",")}
