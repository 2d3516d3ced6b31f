"""The object stores' errors as this package's, at the one boundary where they can arise.

What is worth another try is told apart from what is not: a service that answers 5xx, 408 or 429, cuts a
connection or says nothing is *unavailable*; one that refuses is an error that another try cannot mend.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ..errors import ConjureError, StorageConflictError, StorageError, StorageNotFoundError
from ..errors import StorageUnavailableError as Unavailable

Translator: TypeAlias = Callable[[str, str], StorageError]

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]{1,100})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_WORTH_ANOTHER_TRY = frozenset({408, 425, 429})

#: Where cloud machines ask for credentials. A request there means that none was found anywhere else.
_CREDENTIAL_SERVICES = ("169.254.169.254", "169.254.170.2", "fd00:ec2::254", "metadata.google.internal")


def _not_found(where: str, said: str) -> StorageError:
    if "<Code>NoSuchBucket" in said:
        return StorageError(where, "the bucket does not exist; make it, or name another")
    if "<Code>NoSuchUpload" in said:
        return Unavailable(where, "an upload in parts broke off")
    return StorageNotFoundError(where, "there is nothing under that key")


def _exists(where: str, said: str) -> StorageError:
    if "ConditionalRequestConflict" in said or "OperationAborted" in said:
        return Unavailable(where, "another write to it is under way")  # S3 asks for another try
    return StorageConflictError(where, "it exists already")


def _changed(where: str, said: str) -> StorageError:  # noqa: ARG001  one shape for all
    return StorageConflictError(where, "somebody else changed it")


def _refused(where: str, said: str) -> StorageError:
    return StorageError(where, f"the service refused the credentials ({_short(said)}); set others")


def _invalid(where: str, said: str) -> StorageError:
    return StorageError(where, f"no key of an object store ({_short(said)})")


class UnsupportedError(StorageError):
    """The service has no such operation."""


def _unsupported(where: str, said: str) -> StorageError:
    return UnsupportedError(where, f"the service cannot do that ({_short(said)})")


def _configuration(where: str, said: str) -> StorageError:
    return StorageError(where, f"a wrong option ({_short(said)})")


def _interrupted(where: str, said: str) -> StorageError:
    return Unavailable(where, _short(said))


def _generic(where: str, said: str) -> StorageError:
    if any(host in said for host in _CREDENTIAL_SERVICES):
        return StorageError(
            where, "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if "redirect without LOCATION" in said:
        return StorageError(where, "the bucket lies in another region; set region or AWS_REGION")
    if "LocalFileSystem error" in said or "Missing bucket name" in said or "builder error" in said:
        return StorageError(where, _short(said))
    status = _STATUS.search(said)
    if status and int(status[1]) < 500 and int(status[1]) not in _WORTH_ANOTHER_TRY:
        return StorageError(where, f"the service refused: {_short(said)}")
    return Unavailable(where, _short(said))


def _other(where: str, said: str) -> StorageError:
    return StorageError(where, _short(said))


#: What each error of ``obstore.exceptions`` becomes. It raises Python's own in place of some.
BY_NAME: dict[str, Translator] = {
    "AlreadyExistsError": _exists,
    "PreconditionError": _changed,
    "NotModifiedError": _changed,
    "NotFoundError": _not_found,
    "PermissionDeniedError": _refused,
    "UnauthenticatedError": _refused,
    "InvalidPathError": _invalid,
    "NotSupportedError": _unsupported,
    "UnknownConfigurationKeyError": _configuration,
    "JoinError": _interrupted,
    "GenericError": _generic,
    "BaseError": _other,
}

#: Python's errors that come from there, most specific first.
BUILTIN: tuple[tuple[type[Exception], Translator], ...] = (
    (FileNotFoundError, _not_found),
    (FileExistsError, _exists),
    (PermissionError, _other),
    (TimeoutError, _interrupted),
    (ConnectionError, _interrupted),
    (NotImplementedError, _unsupported),
    (OSError, _other),
    (ValueError, _invalid),
)


def translate(error: Exception, where: str) -> StorageError | None:
    """This package's error for one of an object store's; None when it is not of that kind."""
    said = str(error)
    for kind in type(error).__mro__:
        if kind.__module__ == "obstore.exceptions":
            return BY_NAME.get(kind.__name__, _other)(where, said)
    for builtin, translator in BUILTIN:
        if isinstance(error, builtin):
            return translator(where, said)
    return None


def library() -> Any:
    """The ``obstore`` package, imported at first use.

    Raises:
        StorageError: it is not installed.
    """
    try:
        import obstore
    except ImportError as error:
        raise StorageError("obstore", "not installed; run: pip install 'conjure-jupyter[s3]'") from error
    return obstore


@contextlib.contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn each error that an object store raises in the block into this package's.

    Args:
        where: the key or address to name.

    Raises:
        StorageNotFoundError: there is nothing.
        StorageConflictError: it exists, or was changed.
        StorageUnavailableError: worth another try.
        StorageError: any other failure.
    """
    try:
        yield
    except ConjureError:
        raise
    except Exception as error:
        ours = translate(error, where)
        if ours is None:
            raise
        raise ours from error


def _short(said: str) -> str:
    """What the service said, in one line, without the address's query, where signatures stand."""
    code, message = _CODE.search(said), _MESSAGE.search(said)
    status = _STATUS.search(said)
    if code or status:
        parts = (status and status[1], code and code[1], message and message[1])
        return " ".join(part for part in parts if part)
    line = said.partition("\n\nDebug source")[0]
    line = re.sub(r"(https?://[^\s?]*)\?\S*", r"\1", line)
    return " ".join(line.split())[:300]
