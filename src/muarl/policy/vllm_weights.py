"""Make a folder of trained weights fit for `reload_weights` of vLLM's CPU build."""

from __future__ import annotations

from pathlib import Path

_HEAD = "lm_head.weight"
_EMBEDDING = "embed_tokens.weight"


def with_explicit_head(weights_dir: Path, workspace: Path) -> Path:
    """A folder with the same weights that also names the output head.

    vLLM's CPU layers multiply with packed copies of their weights, made when a layer is loaded. A
    head tied to the embedding is never loaded by its own name, so after a reload it would go on
    with the packed copy of the old embedding (seen in vLLM 0.32). Named explicitly, it is packed
    anew.

    Args:
        weights_dir: Folder of safetensors.
        workspace: An existing folder to build in; what an earlier call left is replaced.

    Returns:
        `weights_dir` itself if it names the head, else `workspace`, filled with links to the
        files and one more file that holds the head.
    """
    from safetensors import safe_open
    from safetensors.torch import save_file

    head = None
    files = sorted(weights_dir.glob("*.safetensors"))
    for file in files:
        with safe_open(str(file), framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (not a mapping: it has no iterator)
                if name == _HEAD:
                    return weights_dir
                if name.endswith(_EMBEDDING):
                    head = tensors.get_tensor(name)
    if head is None:
        return weights_dir
    for old in workspace.iterdir():
        old.unlink()
    for file in files:
        (workspace / file.name).symlink_to(file.resolve())
    save_file({_HEAD: head}, str(workspace / "tied-head.safetensors"))
    return workspace
