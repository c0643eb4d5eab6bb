"""Check a folder of trained weights, and make it fit for vLLM's `reload_weights`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muarl.errors import WeightSyncError

_HEAD = "lm_head.weight"
_EMBEDDING = "embed_tokens.weight"


def prepare_weights(weights_dir: Path, workspace: Path, explicit_head: bool) -> Path:
    """A folder that vLLM can reload from.

    vLLM's CPU layers multiply with packed copies of their weights, made when a layer is loaded. An
    output head tied to the embedding is never loaded under its own name, so after a reload it
    would go on with the packed copy of the old embedding (seen in vLLM 0.32). Named explicitly, it
    is packed anew.

    Args:
        weights_dir: Folder of safetensors.
        workspace: An existing folder to build in; what an earlier call left is replaced.
        explicit_head: Name the head where the weights do not.

    Returns:
        `weights_dir` itself, or `workspace` filled with links to its files and with one more file
        that holds the head.

    Raises:
        WeightSyncError: The folder holds no safetensors, or broken ones. (vLLM would look for a
            folder it cannot read on the model hub.)
    """
    from safetensors import SafetensorError

    files = sorted(weights_dir.glob("*.safetensors"))
    if not files:
        raise WeightSyncError(f"no safetensors in {weights_dir}: nothing to sync")
    try:
        head, named = _find_head(files)
    except (SafetensorError, OSError) as error:
        raise WeightSyncError(f"cannot read the safetensors in {weights_dir}: {error}") from error
    if named or head is None or not explicit_head:
        return weights_dir
    return _with_head(files, head, workspace)


def _find_head(files: list[Path]) -> tuple[Any, bool]:
    """The embedding, and whether the head stands beside it under its own name."""
    from safetensors import safe_open

    embedding, named = None, False
    for file in files:
        with safe_open(str(file), framework="pt") as tensors:
            names = list(tensors.keys())
            named = named or _HEAD in names
            for name in names:
                if name.endswith(_EMBEDDING):
                    embedding = tensors.get_tensor(name)
    return embedding, named


def _with_head(files: list[Path], head: Any, workspace: Path) -> Path:
    from safetensors.torch import save_file

    for old in workspace.iterdir():
        old.unlink()
    for file in files:
        (workspace / file.name).symlink_to(file.resolve())
    save_file({_HEAD: head}, str(workspace / "tied-head.safetensors"))
    return workspace
