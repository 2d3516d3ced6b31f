"""Errors of the Docker SDK, of what it stands on and of the system, as ours: one sentence and the next step.

They are looked up most specific first; every exception of ``docker.errors`` has an entry of its own.
"""

from __future__ import annotations

import contextlib
import functools
import re
import socket
import ssl
from collections.abc import Callable, Iterator

from ...errors import ContainerError, DockerImageError, DockerUnavailableError, ExecutorError
from .addresses import Address

Translator = Callable[[Exception, Address], ExecutorError]

_NO_IMAGE = re.compile(
    r"(?:failed to find image|no such image:?) ?['\"]?([^\s'\"]+?):?(?=[\s'\"]|$)", re.IGNORECASE
)
_START = "start it (sudo systemctl start docker, Docker Desktop, or podman system service --time 0)"


@contextlib.contextmanager
def translated(address: Address) -> Iterator[None]:
    """Errors of the engine inside the block leave it as ours; those of the program stay what they are.

    Raises:
        DockerUnavailableError: the engine does not answer, or does not let this user in.
        DockerImageError: the image is not there, or cannot be used.
        ContainerError: the engine refuses what it was asked.
    """
    try:
        yield
    except ExecutorError:
        raise
    except Exception as error:
        for kind, translate in table():
            if isinstance(error, kind):
                raise translate(error, address) from error
        raise


@functools.cache
def table() -> tuple[tuple[type[Exception], Translator], ...]:
    """Which exception becomes what, the most specific first."""
    import requests
    import urllib3
    from docker import errors as docker

    return (
        (docker.ImageNotFound, _no_image),
        (docker.NotFound, _refused),
        (docker.APIError, _answer),
        (docker.InvalidVersion, _too_old),
        (docker.InvalidRepository, _bad_image),
        (docker.BuildError, _bad_image),
        (docker.ImageLoadError, _bad_image),
        (docker.InvalidConfigFile, _bad_configuration),
        (docker.TLSParameterError, _tls),
        (docker.MissingContextParameter, _bad_configuration),
        (docker.ContextAlreadyExists, _bad_configuration),
        (docker.ContextNotFound, _bad_configuration),
        (docker.ContextException, _bad_configuration),
        (docker.InvalidArgument, _refused),
        (docker.DeprecatedMethod, _refused),
        (docker.NullResource, _refused),
        (docker.ContainerError, _refused),
        (docker.StreamParseError, _garbled),
        (docker.DockerException, _other),
        (requests.exceptions.JSONDecodeError, _garbled),
        (requests.exceptions.RequestException, _connection),
        (urllib3.exceptions.HTTPError, _connection),
        (OSError, _connection),
    )


def refused(message: str, address: Address, status: int) -> ExecutorError:
    """What the engine says when it will not do something, by the text of its answer."""
    lowered = message.lower()
    if status == 404 and (found := _NO_IMAGE.search(message)):
        return _image_missing(found.group(1))
    if "http request to an https server" in lowered:
        return DockerUnavailableError(
            f"The engine at {address} speaks TLS only: set DOCKER_TLS_VERIFY=1, "
            "and DOCKER_CERT_PATH to the folder with ca.pem, cert.pem and key.pem"
        )
    if "client version" in lowered and ("too old" in lowered or "too new" in lowered):
        return DockerUnavailableError(
            f"The engine at {address} and the Docker SDK do not fit: {_line(message)}; update the older one"
        )
    if status in (401, 403, 407):
        return DockerUnavailableError(
            f"The engine at {address} does not allow it: {_line(message)}; ask whoever runs it"
        )
    return ContainerError(f"The engine refused: {_line(message)}")


def _answer(error: Exception, address: Address) -> ExecutorError:
    status = getattr(error, "status_code", None) or 0
    return refused(str(getattr(error, "explanation", None) or error), address, status)


def _no_image(error: Exception, _: Address) -> ExecutorError:
    found = _NO_IMAGE.search(str(getattr(error, "explanation", None) or error))
    return _image_missing(found.group(1) if found else "asked for")


def _image_missing(name: str) -> DockerImageError:
    return DockerImageError(
        name,
        "is not on the engine: build the sandbox's with `conjure docker build`, or pull it with docker pull",
    )


def _bad_image(error: Exception, _: Address) -> ExecutorError:
    return DockerImageError("asked for", f"cannot be used: {_line(str(error))}")


def _refused(error: Exception, _: Address) -> ExecutorError:
    return ContainerError(f"The engine refused: {_line(str(getattr(error, 'explanation', None) or error))}")


def _too_old(error: Exception, address: Address) -> ExecutorError:
    return DockerUnavailableError(
        f"The engine at {address} is too old: {_line(str(error))}; update it to Docker 19.03 or Podman 4"
    )


def _bad_configuration(error: Exception, _: Address) -> ExecutorError:
    return DockerUnavailableError(
        f"The configuration of the docker command cannot be used: {_line(str(error))}; "
        "correct it in ~/.docker, or set DOCKER_HOST"
    )


def _garbled(_: Exception, address: Address) -> ExecutorError:
    return DockerUnavailableError(
        f"What answers at {address} is no Docker engine: correct the address in DOCKER_HOST or the context"
    )


def _tls(error: Exception, address: Address) -> ExecutorError:
    return DockerUnavailableError(
        f"TLS with the engine at {address} fails: {_line(str(error))}; "
        "check ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH or the context"
    )


def _other(error: Exception, address: Address) -> ExecutorError:
    cause = next((below for below in _below(error) if isinstance(below, OSError)), None)
    if cause is not None and cause is not error:
        return _connection(cause, address)
    return DockerUnavailableError(f"The engine at {address} cannot be used: {_line(str(error))}")


def _connection(error: Exception, address: Address) -> ExecutorError:
    """No answer; the reason lies below several layers of libraries."""
    below = list(_below(error))

    def holds(*kinds: type[BaseException]) -> bool:
        return any(isinstance(each, kinds) for each in below)

    if (failed := next((each for each in below if isinstance(each, ssl.SSLError)), None)) is not None:
        return _tls(failed, address)
    if holds(PermissionError):
        text = (
            f"You may not use the engine's socket {address.path}: join its group "
            "(sudo usermod -aG docker $USER, then log in again), or run a rootless engine "
            "(dockerd-rootless-setuptool.sh install, or systemctl --user start podman.socket)"
        )
    elif holds(FileNotFoundError):
        text = f"There is no engine at {address}: {_START}, or correct the address"
    elif holds(socket.gaierror):
        text = f"The host of {address} is not known: correct it, or check the network"
    elif holds(TimeoutError) or any("Timeout" in type(each).__name__ for each in below):
        text = f"The engine at {address} does not answer: see whether `docker info` does, and restart it"
    elif holds(ConnectionRefusedError):
        text = f"Nothing answers at {address}: {_START}"
    else:
        # What the libraries raise only wraps a system's error, whose words are plainer.
        cause = next((each for each in below if isinstance(each, OSError) and _plain(each)), error)
        reason = _line(str(cause))
        text = f"The connection to the engine at {address} broke ({reason}): {_START} if it does not run"
    return DockerUnavailableError(text)


def _plain(error: BaseException) -> bool:
    return type(error).__module__ == "builtins" and bool(str(error))


def _below(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that it was made from, wherever the libraries put it."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        beside = (*each.args, getattr(each, "reason", None), each.__cause__, each.__context__)
        waiting += [more for more in beside if isinstance(more, BaseException)]


def _line(text: str) -> str:
    """The text of another program in one line, short enough for a sentence."""
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= 400 else f"{text[:400]} …"
