"""What helps when a build fails, by what the failed step printed."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Case(NamedTuple):
    """One of the patterns stands in the output; ``text`` says what it means and what to do."""

    patterns: tuple[str, ...]
    text: str


#: The first that fits counts: behind a proxy that refuses, a package cannot be found either.
_CASES = (
    _Case(
        ("x509: ", "tls: failed to verify"),
        "the engine does not trust the registry of the base image: give the engine its certificate, "
        "or load the base image with `docker load`",
    ),
    _Case(
        (
            "CERTIFICATE_VERIFY_FAILED",
            "certificate verif",
            "SSL certificate problem",
            "self[- ]signed certificate",
            "unable to get local issuer",
            "SSLCertVerificationError",
        ),
        "a server's certificate is not trusted in the image: pass your company's CA bundle with "
        "`--ca-bundle FILE`",
    ),
    _Case(
        (r"\b407\b", "Proxy Authentication Required", "unable to connect to proxy", "ProxyError"),
        "the proxy refuses: pass the right one with `--build-arg HTTP_PROXY=URL` and "
        "`--build-arg HTTPS_PROXY=URL`",
    ),
    _Case(
        (
            "pull access denied",
            "manifest unknown",
            "manifest for .* not found",
            "repository does not exist",
            "requested access to the resource is denied",
            "invalid reference format",
        ),
        "the base image cannot be had: name another with `--base IMAGE`, or log in to its registry with "
        "`docker login`",
    ),
    _Case(
        ('Get "?https?://[^ ]*/v2/',),
        "the engine does not reach the registry of the base image: check its network, or name an image that "
        "it has with `--base IMAGE`",
    ),
    _Case(
        ("no space left on device", "You don't have enough free space"),
        "the engine's disk is full: make room with `docker system prune`",
    ),
    _Case(
        ("has no apt-get", "apt-get: not found", 'exec: "/bin/sh".*no such file'),
        "the base image must be a Debian or an Ubuntu: name another with `--base IMAGE`",
    ),
    _Case(
        (
            "temporary failure in name resolution",
            "temporary failure resolving",
            "could not resolve",
            "name or service not known",
            "no such host",
            "no route to host",
            "network is unreachable",
            "connection timed out",
            "connection refused",
            "failed to establish a new connection",
            "failed to fetch",
            r"i/o timeout",
            r"client\.timeout",
            "request canceled",
            "EAI_AGAIN",
            "ENOTFOUND",
        ),
        "the network was not reached: check it, pass a proxy with `--build-arg HTTPS_PROXY=URL`, or a mirror "
        "with `--build-arg APT_MIRROR=URL` and `--build-arg PIP_INDEX_URL=URL`",
    ),
    _Case(
        ("Unable to locate package", "has no installation candidate"),
        "the base image's distribution lacks a package: name a newer one with `--base IMAGE`",
    ),
    _Case(
        ("No matching distribution found", "Could not find a version that satisfies"),
        "the package index lacks a package: name another with `--build-arg PIP_INDEX_URL=URL`, or a base "
        "image with a newer Python with `--base IMAGE`",
    ),
)
_OTHERWISE = "its last lines say why; `conjure docker build` shows all of them"


def advice(output: str) -> str:
    """What the end of a failed build means, and what to do: a clause that ends a sentence."""
    for case in _CASES:
        if any(re.search(pattern, output, re.IGNORECASE) for pattern in case.patterns):
            return case.text
    return _OTHERWISE
