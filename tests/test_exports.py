"""The public names: a change here is a change of the interface."""

from __future__ import annotations

import pytest

import conjure
import conjure_jupyter

SKILLS = """
    Diagnostic Frontmatter Resources Skill SkillList SkillRegistry default_roots extract_skill_file init_skill
    load load_all load_body load_resources load_skill_file pack_skill parse_frontmatter parse_skill_md
    read_resource scan_directory validate
"""
PROMPT = "available_skills_block build_system_prompt discovery_instructions format_skill system_prompt"
TOOLS = """
    Policy ToolCall ToolResult Toolbox bash_tool build_tools_param create_file_tool parse_tool_use
    str_replace_tool tool_definitions validate_path view_tool
"""
EXECUTION = """
    CommandResult DockerExecutor DockerOptions ExecutionContext Executor LocalExecutor Stat build_image
    check_environment create_context create_executor execute
"""
CONVERSATION = """
    ApprovalRequest Approver Block Client Continue Done DryRun Event FileRef ParsedResponse Reply Request
    Session ToolRecord Turn Verdict arun_loop conversation_complete execute_tool_calls extract_tool_uses
    format_tool_results format_tool_results_message parse_response process_response run_loop
"""
ARTIFACTS = """
    Artifact ArtifactRegistry ArtifactResolver BlobStore Discovery LogicalPath Registration Resolved
    SessionArtifacts Source artifacts_section parse_uri validate_file_path
"""
STORAGE = """
    Erased FileCallbacks LocalStorage MemoryStorage S3Storage Storage TigrisStorage UndoPlan Undone
    create_storage
"""
REST = """
    ConjureError Settings __version__ errors load_ipython_extension telemetry testing
    unload_ipython_extension
"""
NAMES = sorted(f"{SKILLS} {PROMPT} {TOOLS} {EXECUTION} {CONVERSATION} {ARTIFACTS} {STORAGE} {REST}".split())


@pytest.mark.parametrize("module", [conjure_jupyter, conjure], ids=lambda module: module.__name__)
def test_the_names_are_these(module) -> None:
    assert set(module.__all__) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there_and_the_same_by_both_imports(name: str) -> None:
    assert getattr(conjure, name) is getattr(conjure_jupyter, name)


def test_dir_lists_them_and_nothing_else_is_made_up() -> None:
    assert set(NAMES) - {"__version__", "load_ipython_extension", "unload_ipython_extension"} <= set(
        dir(conjure)
    )
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = conjure_jupyter.no_such_name
