"""The object that a lease is, on storages that keep to conditional writes and on others."""

from __future__ import annotations

import logging

from ...errors import StorageConflictError, StorageNotFoundError
from ...storage.bucket import Bucket
from ...storage.translation import UnsupportedError
from .holder import Holder, read_holder
from .keys import LEASE

logger = logging.getLogger(__name__)

#: What no object's etag is.
_NO_ETAG = "00000000000000000000000000000000"


class LeaseObject:
    """Reads and replaces the lease of one session.

    Args:
        bucket: the session's keys.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.where = bucket.url_of(LEASE)
        self._bucket = bucket

    async def read(self) -> tuple[Holder | None, str]:
        """The holder, None when what is there is no lease; and the etag, empty when nothing is there.

        Raises:
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        try:
            data, etag = await self._bucket.get_with_etag(LEASE)
        except StorageNotFoundError:
            return None, ""
        return read_holder(data), etag

    async def write(self, holder: Holder, etag: str) -> str:
        """Put a lease in place of the one that ``etag`` stands for, of none when it is empty.

        Returns:
            The new etag.

        Raises:
            StorageConflictError: something else is there.
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        data = holder.encode()
        if etag:
            return await self._bucket.put_if(LEASE, data, etag)
        try:
            return await self._bucket.put_new(LEASE, data)
        except UnsupportedError as error:  # nobody was there a moment ago, which is all that can be known
            logger.debug("%s has no conditional writes: %s", self._bucket.url, error)
            return await self._bucket.put(LEASE, data)

    async def refuses(self, holder: Holder) -> bool:
        """Whether the storage keeps to conditional writes: write the lease again where it must refuse.

        Args:
            holder: has the lease already.

        Raises:
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        data = holder.encode()
        for replaces in ("", _NO_ETAG):
            try:
                if replaces:
                    await self._bucket.put_if(LEASE, data, replaces)
                else:
                    await self._bucket.put_new(LEASE, data)
            except StorageConflictError:
                continue
            except UnsupportedError as error:
                logger.debug("%s has no conditional writes: %s", self._bucket.url, error)
            return False
        return True

    async def delete(self) -> None:
        """Delete it.

        Raises:
            StorageUnavailableError: the service did not answer.
            StorageError: any other failure.
        """
        await self._bucket.delete(LEASE)
