from __future__ import annotations

import io
import re
import ssl
import tarfile
import uuid
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

import pytest
import trustme

from conjure_jupyter._version import __version__
from conjure_jupyter.errors import DockerImageError, SettingsError
from conjure_jupyter.executors.docker.image import (
    abuild_image,
    build_arguments,
    build_context,
    build_image,
)

from .builds import built, connected
from .hardened import run

FILES = resources.files("conjure_jupyter.executors.docker") / "files"

#: Section 9.3 of the specification; ``python3.12`` is Ubuntu 24.04's ``python3``.
SYSTEM = "python3 python3-pip python3-venv nodejs npm bash git curl wget jq poppler-utils qpdf"
PYTHON = """
    pyarrow openpyxl xlsxwriter xlrd pillow python-pptx python-docx pypdf pdfplumber pypdfium2 pdf2image
    pdfkit tabula-py reportlab img2pdf pandas numpy matplotlib pyyaml requests beautifulsoup4
"""
#: What pdfkit, tabula-py and matplotlib need and do not bring.
NEEDED = "?wkhtmltopdf default-jre-headless fontconfig fonts-dejavu-core ca-certificates"


def text(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def names_in(context: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(context)) as archive:
        return archive.getnames()


def test_the_image_has_all_the_specification_lists() -> None:
    dockerfile = text("Dockerfile")
    installed = " ".join(re.findall(r"apt-install\.sh((?:[^\n]*\\\n)*[^\n]*)", dockerfile)).split()
    assert set(f"{SYSTEM} {NEEDED}".split()) <= set(installed)
    wanted = [line for line in text("requirements.txt").splitlines() if not line.startswith("#")]
    assert sorted(PYTHON.split()) == sorted(wanted)
    assert "ARG BASE=ubuntu:24.04" in dockerfile
    assert "PYTHONUNBUFFERED=1" in dockerfile
    assert "NODE_ENV=production" in dockerfile


def test_the_context_is_the_same_every_time_so_that_the_engines_cache_holds(tmp_path: Path) -> None:
    assert build_context() == build_context()
    assert sorted(names_in(build_context())) == sorted(entry.name for entry in FILES.iterdir())
    bundle = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(bundle))
    assert set(names_in(build_context(bundle))) - set(names_in(build_context())) == {"certificates.pem"}


def test_a_key_beside_the_certificate_stays_here(tmp_path: Path) -> None:
    authority = trustme.CA()
    bundle = tmp_path / "both.pem"
    bundle.write_bytes(authority.private_key_pem.bytes() + b"a comment\n" + authority.cert_pem.bytes())
    context = build_context(bundle)
    assert b"PRIVATE KEY" not in context
    assert b"a comment" not in context
    assert authority.cert_pem.bytes().strip() in context


def test_a_certificate_may_be_der(tmp_path: Path) -> None:
    pem = trustme.CA().cert_pem.bytes().decode()
    bundle = tmp_path / "ca.der"
    bundle.write_bytes(ssl.PEM_cert_to_DER_cert(pem))
    assert pem.strip().encode() in build_context(bundle)


@pytest.mark.parametrize(
    "content", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nxx", b"\x30\x82\x00"]
)
def test_a_bundle_without_a_certificate_is_refused(tmp_path: Path, content: bytes) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(content)
    with pytest.raises(SettingsError, match=r"ca_bundle: .*ca\.pem holds no certificate"):
        build_context(bundle)


def test_a_bundle_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.pem", tmp_path):
        with pytest.raises(SettingsError, match=re.escape(str(path))):
            build_context(path)


def test_the_arguments_are_those_of_the_dockerfile_and_proxies() -> None:
    assert {
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "NPM_CONFIG_REGISTRY",
        "APT_MIRROR",
        "HTTPS_PROXY",
    } <= set(build_arguments())


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"tag": ""}, "tag"),
        ({"tag": "Upper Case"}, "tag"),
        ({"tag": "a:b:c"}, "tag"),
        ({"tag": "-rm"}, "tag"),
        ({"base": ""}, "base"),
        ({"base": "a\nRUN evil"}, "base"),
        ({"build_args": {"PIP_INDEX": "x"}}, "build_args"),
        ({"build_args": {"BASE": "x"}}, "build_args"),
        ({"ca_bundle": "/nowhere/ca.pem"}, "ca_bundle"),
    ],
)
def test_what_cannot_be_used_is_said_before_an_engine_is_asked(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, object], name: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(SettingsError) as caught:
        build_image(**options)
    assert caught.value.name == name


@pytest.fixture
async def tag(docker_engine: str) -> AsyncIterator[str]:
    """A name for an image, which is removed after the test."""
    name = f"conjure-test-image:{uuid.uuid4().hex}"
    yield name
    async with connected(docker_engine) as engine:
        await engine.call(engine.api.remove_image, name)


@pytest.mark.docker
async def test_the_slim_image(docker_engine: str, docker_image: str, tag: str, tmp_path: Path) -> None:
    authority = trustme.CA(organization_name="Conjure Test Authority")
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    lines: list[str] = []
    async with connected(docker_engine) as engine:
        try:
            image = await abuild_image(
                tag=tag,
                base=docker_image,
                ca_bundle=bundle,
                extras=False,
                on_progress=lines.append,
                engine=engine,
            )
        except DockerImageError as error:
            if "network was not reached" in str(error):
                pytest.skip("the engine reaches no packages of the distribution")
            raise
        found = await engine.call(engine.api.inspect_image, tag)
        assert found["Id"] == image
        assert found["Config"]["User"] == "sandbox"
        assert found["Config"]["Labels"]["conjure.version"] == __version__
        assert found["Config"]["WorkingDir"] == "/workspace"
        assert not found["Config"]["Entrypoint"]
    assert any(line.startswith("Step 1/") for line in lines)
    code = (
        "import ssl, pathlib; (pathlib.Path.home() / 'x').touch(); print(pathlib.Path.home(), "
        "any('Conjure Test Authority' in str(c) for c in ssl.create_default_context().get_ca_certs()))"
    )
    assert await run(docker_engine, tag, ["python", "-c", code]) == "/home/sandbox True\n"
    assert (await run(docker_engine, tag, ["bash", "-c", "id -u sandbox; id -u; type node"])).startswith(
        "1000\n12345\nbash: line 1: type: node: not found"
    )


@pytest.mark.docker
async def test_a_user_who_has_the_id_already_becomes_the_sandboxs(
    docker_engine: str, docker_image: str, tag: str
) -> None:
    """Simulates Ubuntu 24.04, whose image comes with ``ubuntu`` of id 1000."""
    dockerfile = (
        f"FROM {docker_image}\nRUN useradd --create-home --uid 1000 --groups adm,games ubuntu\n"
        "COPY sandbox-user.sh /\nRUN sh /sandbox-user.sh && sh /sandbox-user.sh\n"
    )
    await built(docker_engine, tag, dockerfile, {"sandbox-user.sh": text("sandbox-user.sh")})
    said = await run(docker_engine, tag, ["bash", "-c", "id sandbox; id ubuntu; stat -c %U:%a /workspace"])
    assert said.splitlines() == [
        "uid=1000(sandbox) gid=1000(sandbox) groups=1000(sandbox)",
        "id: 'ubuntu': no such user",
        "sandbox:1777",
    ]


@pytest.mark.docker
async def test_nothing_lends_another_users_rights(docker_engine: str, docker_image: str, tag: str) -> None:
    dockerfile = (
        f"FROM {docker_image}\nRUN cp /bin/true /opt/lent && chmod 6755 /opt/lent\n"
        "COPY sandbox-user.sh /\nRUN sh /sandbox-user.sh\n"
    )
    await built(docker_engine, tag, dockerfile, {"sandbox-user.sh": text("sandbox-user.sh")})
    command = ["bash", "-c", "stat -c %a /opt/lent; find / -xdev -type f -perm /6000 2>/dev/null"]
    assert await run(docker_engine, tag, command, user="0:0") == "755\n"


@pytest.mark.docker
async def test_every_certificate_of_a_bundle_is_trusted(
    docker_engine: str, docker_image: str, tag: str
) -> None:
    bundle = b"".join(trustme.CA(organization_name=f"Authority {n}").cert_pem.bytes() for n in range(3))
    dockerfile = (
        f"FROM {docker_image}\nCOPY trust.sh certificates.pem /opt/conjure/\nRUN sh /opt/conjure/trust.sh\n"
    )
    await built(docker_engine, tag, dockerfile, {"trust.sh": text("trust.sh"), "certificates.pem": bundle})
    code = "import ssl; print(*[str(c['subject']) for c in ssl.create_default_context().get_ca_certs()])"
    said = await run(docker_engine, tag, ["python3", "-c", code])
    assert all(f"Authority {n}" in said for n in range(3))


@pytest.mark.docker
async def test_a_base_that_is_no_debian_is_said(docker_engine: str, docker_image: str) -> None:
    dockerfile = (
        f"FROM {docker_image}\nRUN rm /usr/bin/apt-get\nCOPY apt-install.sh /\nRUN sh /apt-install.sh bash\n"
    )
    with pytest.raises(DockerImageError, match="must be a Debian or an Ubuntu"):
        await built(
            docker_engine, "conjure-test-image:x", dockerfile, {"apt-install.sh": text("apt-install.sh")}
        )
