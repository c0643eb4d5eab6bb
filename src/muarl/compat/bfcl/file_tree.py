"""A file system's state: numbered nodes, a root, a current directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.compat.bfcl.toolkit import Api
from muarl.world import plain

_DEEPEST = 100

Node = Any
"""`{type: file, name, content}` or `{type: directory, name, parent, contents: {name: number}}`."""


class FileTree(Api):
    """Directories and files, as a table of numbered nodes.

    Upstream's objects are shared: a copied directory is new, what is in it is the original's; whoever
    moves or renames a directory gets a new one, and what is in it still has the old one as its parent.
    So the state is a graph, and `root` in `public` is the tree that one sees from its root.
    """

    MODULE = "gorilla_file_system"
    LONG_CONTEXT = True

    @classmethod
    def begin(cls, config: Any, upstream: Any, *, long: bool) -> dict[str, Any]:
        state: dict[str, Any] = {"long_context": long, "_nodes": {}, "_root": "0", "_cwd": "0"}
        nodes = state["_nodes"]
        if "root" not in config:
            add_directory(nodes, "/", None)
            return state
        name, top = next(iter(config["root"].items()))
        _load(nodes, name, top["contents"], None, upstream.long if long else None)
        return state

    def public(self) -> dict[str, Any]:
        root = self._tree(self.state["_root"], 0)
        return {"long_context": self.state["long_context"], "root": root}

    def _tree(self, number: str, depth: int) -> dict[str, Any]:
        node = self._nodes[number]
        if node["type"] == "file":
            return {key: plain(node[key]) for key in ("type", "name", "content")}
        tree = {"type": "directory", "name": node["name"], "contents": {}}
        if depth < _DEEPEST:  # a directory that was copied into itself has no end
            below = node["contents"].items()
            tree["contents"] = {name: self._tree(child, depth + 1) for name, child in below}
        return tree

    @property
    def _nodes(self) -> Any:
        return self.state["_nodes"]

    @property
    def _here(self) -> Node:
        return self._nodes[self.state["_cwd"]]

    @property
    def _names(self) -> Any:
        """Names in the current directory, to the numbers of their nodes."""
        return self._here["contents"]

    def path(self) -> str:
        """The current directory's path, by the names of its parents."""
        names, number = [], self.state["_cwd"]
        while number is not None:
            names.append(self._nodes[number]["name"])
            number = self._nodes[number]["parent"]
        return "/" + "/".join(reversed(names))

    def _item(self, name: Any) -> str | None:
        """The number of what is called so in the current directory.

        Who calls something `.` finds the current directory by that name.
        """
        if name not in self._names:
            return None
        return str(self.state["_cwd"] if name == "." else self._names[name])

    def _directory(self, directory: Node, name: str) -> str | None:
        """The number of a directory's subdirectory."""
        number = directory["contents"].get(name)
        is_one = number is not None and self._nodes[number]["type"] == "directory"
        return number if is_one else None

    def _file(self, name: Any) -> Node | None:
        node = self._node(name)
        return node if node is not None and node["type"] == "file" else None

    def _node(self, name: Any) -> Node | None:
        number = self._item(name)
        return None if number is None else self._nodes[number]


def add_file(nodes: Any, name: str, content: Any) -> str:
    """Add a file to the nodes of a tree; its number."""
    number = str(len(nodes))
    nodes[number] = {"type": "file", "name": name, "content": content}
    return number


def add_directory(nodes: Any, name: str, parent: str | None) -> str:
    """Add an empty directory likewise; `parent` is the number of the one that it is in."""
    number = str(len(nodes))
    nodes[number] = {"type": "directory", "name": name, "parent": parent, "contents": {}}
    return number


def _load(
    nodes: Any,
    name: str,
    contents: Mapping[str, Any],
    parent: str | None,
    long: Mapping[str, Any] | None,
) -> str:
    """Add a configured directory with all below; a long context fills its files and lowest directories."""
    number = add_directory(nodes, name, parent)
    inside = nodes[number]["contents"]
    for child, node in contents.items():
        if node["type"] == "directory":
            inside[child] = _load(nodes, child, node["contents"], number, long)
            continue
        content = node["content"]
        if long and child not in long["FILES_TAIL_USED"]:
            content += long["FILE_CONTENT_EXTENSION"]
        inside[child] = add_file(nodes, child, content)
    if long and all(node["type"] == "file" for node in contents.values()):
        for child in long["POPULATE_FILE_EXTENSION"]:
            inside[child] = add_file(nodes, child, "")
    return number
