"""What every storage must do, as tests that anyone can run over their own.

::

    class TestMyStorage(StorageContract):
        @pytest.fixture(autouse=True)
        def _place(self, tmp_path):
            self.folder = tmp_path

        def make_storage(self):
            return MyStorage(self.folder)

The tests are plain functions, each with an event loop of its own, and need neither pytest nor a plug-in.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import secrets
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ..errors import StorageError, StorageNotFoundError
from ..fileref import FileRef
from ..storage import Storage
from .checks import equal, expecting, raises, true

#: Texts that can be no key, by what is wrong with them.
NO_KEYS = {
    "empty": "",
    "absolute": "/etc/passwd",
    "up": "../outside",
    "up and down": "a/../../outside",
    "up at the end": "a/..",
    "here": "a/./b",
    "empty part": "a//b",
    "ends in a slash": "a/",
    "NUL": "a\0b",
    "newline": "a\nb",
    "backslash": "..\\outside",
    "half a surrogate pair": "a\ud800b",
    "long": "x/" * 600 + "x",
    "long part": "x" * 256,
}

#: Keys that look odd and are good.
GOOD_KEYS = (
    "a.txt",
    "..test",
    "...",
    "~",
    "-rf",
    "a b+c%41%2F#?&=;'\".txt",
    "ünï/çødé/日本.txt",
    "deep/" * 40 + "x",
    "x" * 240,
    ".hidden",
    "CON",
    "a:b",
    "$HOME",
    " ",
)


class StorageContract:
    """The tests; a subclass says how to make a storage."""

    #: Whether a second storage with the same options sees what the first one kept.
    lasting = True

    #: Whether it has a folder on this machine.
    local = True

    session_id = "20260101-120000-abcdef"

    def make_storage(self) -> Storage:
        """A storage before ``init``. Made twice in one test, both lead to the same place, empty at first."""
        raise NotImplementedError

    def test_what_was_written_is_read(self) -> None:
        """Bytes come back as they were, none to many, and their digest is right."""

        async def steps(storage: Storage) -> None:
            for content in (b"", b"hello", bytes(range(256)) * 5_000):
                ref = await storage.write("blobs/x.bin", content)
                equal(await storage.read("blobs/x.bin"), content)
                equal((ref.path, ref.size), ("blobs/x.bin", len(content)))
                equal(ref.sha256, hashlib.sha256(content).hexdigest())

        self._with_storage(steps)

    def test_a_file_reference_says_what_was_kept(self) -> None:
        """Content type, time with zone, and the address of a remote one."""

        async def steps(storage: Storage) -> None:
            for key, kind in (("a.csv", "text/csv"), ("b.png", "image/png"), ("c.unknown-kind", None)):
                ref = await storage.write(key, b"1")
                equal(ref.content_type, kind or "application/octet-stream")
                true(ref.created is not None and ref.created.tzinfo is not None, "created has a time zone")
                age = dt.datetime.now(dt.UTC) - (ref.created or dt.datetime.min.replace(tzinfo=dt.UTC))
                true(abs(age) < dt.timedelta(minutes=5), "created is now")
                if storage.remote:
                    true((ref.storage_url or "").endswith(f"/{self.session_id}/{key}"), "the address")
            equal((await storage.write("d", b"1", content_type="text/x-own")).content_type, "text/x-own")

        self._with_storage(steps)

    def test_a_file_is_written_by_its_path(self) -> None:
        """A file's bytes are taken when it is written, not later."""

        async def steps(storage: Storage) -> None:
            content = secrets.token_bytes(3_000_000)
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / "source"
                source.write_bytes(content)
                ref = await storage.write("big.bin", source)
                source.write_bytes(b"changed after it was written")
            equal(await storage.read("big.bin"), content)
            equal((ref.size, ref.sha256), (len(content), hashlib.sha256(content).hexdigest()))
            await raises(StorageError, storage.write("none", Path("/nonexistent/file")))
            equal(await storage.exists("none"), False)

        self._with_storage(steps)

    def test_writing_again_replaces(self) -> None:
        """The last of several writes counts."""

        async def steps(storage: Storage) -> None:
            for number in range(5):
                await storage.write("a/b", b"x" * number)
            equal(await storage.read("a/b"), b"xxxx")
            equal([ref.size for ref in await self._listed(storage)], [4])

        self._with_storage(steps)

    def test_what_is_not_there(self) -> None:
        """Reading says so, asking says no, deleting does nothing."""

        async def steps(storage: Storage) -> None:
            await raises(StorageNotFoundError, storage.read("none"))
            await raises(FileNotFoundError, storage.read("no/such/folder"))
            equal(await storage.exists("none"), False)
            await storage.delete("none")
            equal(await self._listed(storage), [])

        self._with_storage(steps)

    def test_deleting(self) -> None:
        """A deleted key is gone everywhere, and can be written again."""

        async def steps(storage: Storage) -> None:
            await storage.write("a/b", b"1")
            await storage.write("a/c", b"2")
            equal(await storage.exists("a/b"), True)
            await storage.delete("a/b")
            equal(await storage.exists("a/b"), False)
            await raises(StorageNotFoundError, storage.read("a/b"))
            equal([ref.path for ref in await self._listed(storage)], ["a/c"])
            await storage.write("a/b", b"3")
            equal(await storage.read("a/b"), b"3")

        self._with_storage(steps)

    def test_listing_is_sorted_and_by_prefix(self) -> None:
        """A prefix is text, not a folder."""

        async def steps(storage: Storage) -> None:
            keys = ["b", "a/2", "a/10", "a.txt", "ab/c", "Z", "blobs/x"]
            for key in keys:
                await storage.write(key, key.encode())
            for prefix in ("", "a", "a/", "a/1", "b", "none"):
                refs = await self._listed(storage, prefix)
                equal([ref.path for ref in refs], sorted(key for key in keys if key.startswith(prefix)))
                equal([ref.size for ref in refs], [len(ref.path) for ref in refs])

        self._with_storage(steps)

    def test_odd_keys_that_are_good(self) -> None:
        """Names that look like options, links up or addresses are just names."""

        async def steps(storage: Storage) -> None:
            for key in GOOD_KEYS:
                await storage.write(key, key.encode())
            for key in GOOD_KEYS:
                equal(await storage.read(key), key.encode())
            equal([ref.path for ref in await self._listed(storage)], sorted(GOOD_KEYS))
            for key in GOOD_KEYS:
                await storage.delete(key)
            equal(await self._listed(storage), [])

        self._with_storage(steps)

    def test_what_can_be_no_key_is_refused(self) -> None:
        """By every method."""

        async def steps(storage: Storage) -> None:
            for key in NO_KEYS.values():
                await raises(StorageError, storage.write(key, b"1"))
                await raises(StorageError, storage.read(key))
                await raises(StorageError, storage.exists(key))
                await raises(StorageError, storage.delete(key))
            equal(await self._listed(storage), [])

        self._with_storage(steps)

    def test_many_writes_at_once(self) -> None:
        """None is lost, and those of one key keep their order."""

        async def steps(storage: Storage) -> None:
            await asyncio.gather(*(storage.write(f"many/{n:03}", str(n).encode()) for n in range(60)))
            equal(len(await self._listed(storage, "many/")), 60)
            equal(await storage.read("many/059"), b"59")
            await asyncio.gather(*(storage.write("one", str(n).encode()) for n in range(20)))
            equal(await storage.read("one"), b"19")

        self._with_storage(steps)

    def test_before_init_and_after_close(self) -> None:
        """Refused with an error that says what to do; closing twice is fine."""

        async def steps() -> None:
            storage = self.make_storage()
            await raises(StorageError, storage.write("a", b"1"))
            await raises(StorageError, storage.read("a"))
            await storage.close()
            await storage.init(self.session_id)
            equal(storage.session_id, self.session_id)
            await storage.close()
            await storage.close()
            await raises(StorageError, storage.write("a", b"1"))

        asyncio.run(steps())

    def test_closing_deletes_nothing(self) -> None:
        """A second storage finds what the first one kept."""

        async def steps() -> None:
            first = self.make_storage()
            await first.init(self.session_id)
            await first.write("kept", b"1")
            await first.close()
            second = self.make_storage()
            await second.init(self.session_id)
            equal(await second.read("kept"), b"1")
            await second.close()

        if self.lasting:
            asyncio.run(steps())

    def test_cleanup_deletes_all_and_says_what(self) -> None:
        """Here and elsewhere, sent or not."""

        async def steps() -> None:
            storage = self.make_storage()
            await storage.init(self.session_id)
            folder = storage.local_path() if self.local else None
            for key in ("a", "b/c"):
                await storage.write(key, b"1")
            await storage.sync_to_remote()
            await storage.write("b/d", b"2")
            equal([ref.path for ref in await storage.cleanup()], ["a", "b/c", "b/d"])
            await storage.close()
            true(folder is None or not folder.exists(), "the folder is gone")
            again = self.make_storage()
            await again.init(self.session_id)
            equal(await self._listed(again), [])
            await again.close()

        asyncio.run(steps())

    def test_the_local_folder_holds_the_files(self) -> None:
        """For its owner only, whatever the umask."""

        async def steps(storage: Storage) -> None:
            if not self.local:
                with expecting(StorageError):
                    storage.local_path()
                return
            await storage.write("a/b.txt", b"hello")
            folder = storage.local_path()
            equal((folder / "a/b.txt").read_bytes(), b"hello")
            equal(oct(folder.stat().st_mode & 0o777), oct(0o700))
            equal(oct((folder / "a").stat().st_mode & 0o777), oct(0o700))
            equal(oct((folder / "a/b.txt").stat().st_mode & 0o777), oct(0o600))

        self._with_storage(steps)

    def test_given_files_are_brought(self) -> None:
        """As bytes, as text, or by an address when somebody fetches."""

        async def steps(storage: Storage) -> None:
            refs = await storage.sync_from_remote(
                [{"path": "a", "content": b"1"}, {"path": "b.txt", "content": "ü", "content_type": "text/x"}]
            )
            equal([(ref.path, ref.size, ref.content_type) for ref in refs][1], ("b.txt", 2, "text/x"))
            equal(await storage.read("b.txt"), "ü".encode())
            await raises(StorageError, storage.sync_from_remote([{"path": "c", "url": "https://x.invalid"}]))
            await raises(StorageError, storage.sync_from_remote([{"path": "c"}]))

            async def fetch(url: str) -> bytes:
                return url.encode()

            storage.fetch = fetch
            await storage.sync_from_remote([{"path": "c", "url": "https://x.invalid"}])
            equal(await storage.read("c"), b"https://x.invalid")

        self._with_storage(steps)

    def test_nothing_waits_after_a_sync(self) -> None:
        """What was sent is told once, and is there."""

        async def steps(storage: Storage) -> None:
            for number in range(30):
                await storage.write(f"f/{number % 10}", str(number).encode())
            await storage.delete("f/0")
            sent = await storage.sync_to_remote()
            equal(storage.pending, 0)
            equal(await storage.sync_to_remote(), [])
            if storage.remote:
                equal({ref.path for ref in sent} >= {f"f/{number}" for number in range(1, 10)}, True)
                sizes = {ref.path: ref.size for ref in await storage.list()}
                equal(sizes, {f"f/{number}": 2 for number in range(1, 10)})

        self._with_storage(steps)

    def _with_storage(self, steps: Callable[[Storage], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            storage = self.make_storage()
            await storage.init(self.session_id)
            try:
                await steps(storage)
            finally:
                await storage.close()

        asyncio.run(run())

    async def _listed(self, storage: Storage, prefix: str = "") -> list[FileRef]:
        return await storage.list(prefix)
