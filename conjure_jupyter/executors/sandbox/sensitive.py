"""Which files give away a user's secrets, and which run code later by being there.

Names only: ``plan`` decides what becomes of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

#: Folders of other users, of running programs' sockets and tokens, and of the machine's own keys. What the
#: system's rights keep from a user already is listed too: the kernel may be root's, as in many containers.
HIDDEN = (
    "/home",
    "/root",
    "/Users",
    "/run",
    "/var/run",
    "/tmp",  # noqa: S108
    "/var/tmp",  # noqa: S108
    "/lost+found",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/kubernetes",
    "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/cloud",
    "/var/spool",
    "/var/mail",
    "/private/tmp",
    "/private/var/tmp",
)
#: Patterns of the same.
HIDDEN_PATTERNS = ("/etc/ssh/ssh_host_*_key", "/mnt/*/Users")
#: What programs need of ``/run``: where names are looked up, and the system itself on NixOS.
RUN_NEEDED = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
)
#: In a home folder, besides dot-files: browsers' profiles and keychains live there.
HOME_HIDDEN = ("snap", "Library")
#: Variables that name folders with the means to enter a running kernel.
HIDDEN_VARIABLES = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "XDG_RUNTIME_DIR", "IPYTHONDIR", "GNUPGHOME")

_KEY_LIKE = re.compile(
    r"""
    \.env(\..*)? | \.envrc | \.netrc | _netrc | \.git-credentials | \.pypirc | \.npmrc | \.pgpass | \.my\.cnf
    | \.(ssh|aws|azure|gnupg|docker|kube|config|databrickscfg|boto|s3cfg)
    | .*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk) | id_(rsa|dsa|ecdsa|ed25519)(_sk)?
    | (credentials|client_secret.*|service[-_]account.*)\.json
    """,
    re.VERBOSE | re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\.env\.(example|sample|template|dist)", re.IGNORECASE)

#: Read by shells, git, editors, agents and Jupyter from the folder they start in or from a home folder.
PERSISTENT = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
    *(".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".envrc", ".inputrc"),
    *(".git", ".gitconfig", ".gitmodules", ".hg", ".pre-commit-config.yaml"),
    *(".vscode", ".idea", ".cursor", ".cursorrules", ".zed", ".devcontainer", ".vimrc", ".exrc", ".nvimrc"),
    *(".claude", ".agents", ".codex", ".gemini", ".windsurf", ".mcp.json"),
    *(".ipython", ".jupyter"),
    *("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md"),
)
#: In a ``.git`` that exists only these: commits are a tool's good right.
GIT_PERSISTENT = ("hooks", "config", "modules", "config.worktree", "commondir")


def key_like(folder: Path) -> Iterator[Path]:
    """Entries of a folder that look like keys or hold settings with secrets; nothing deeper is looked at."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  names are all that is needed
    except OSError:
        return
    for name in sorted(names):
        if _KEY_LIKE.fullmatch(name) and not _EXAMPLE.fullmatch(name):
            yield folder / name
