"""Agent Skills: found, read, checked, packed and kept at hand."""

from .archive_cache import extract_skill_file
from .frontmatter import parse_frontmatter
from .loading import load, load_all, load_skill_file
from .models import Diagnostic, Frontmatter, Skill, SkillList
from .packing import pack_skill
from .parsing import load_body, parse_skill_md, read_resource
from .registry import ReloadReport, SkillRegistry, find, index
from .resources import Resources, load_resources
from .roots import Root, default_roots
from .scanning import scan_directory
from .skeleton import init_skill
from .validation import validate

__all__ = [
    "Diagnostic",
    "Frontmatter",
    "ReloadReport",
    "Resources",
    "Root",
    "Skill",
    "SkillList",
    "SkillRegistry",
    "default_roots",
    "extract_skill_file",
    "find",
    "index",
    "init_skill",
    "load",
    "load_all",
    "load_body",
    "load_resources",
    "load_skill_file",
    "pack_skill",
    "parse_frontmatter",
    "parse_skill_md",
    "read_resource",
    "scan_directory",
    "validate",
]
