"""A file system's commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muarl.compat.bfcl.file_tree import FileTree, Node, add_directory, add_file
from muarl.compat.bfcl.toolkit import function, refused

_NOT_IN_NAMES = '|/\\?%*:"><^@#{}[]'
_KIB = 1024.0
_UNITS = ("B", "KB", "MB", "GB", "TB")
_MODES = {"l": "lines", "w": "words", "c": "characters"}


class GorillaFileSystem(FileTree):
    """Commands in a current directory."""

    @function()
    def pwd(self) -> Any:
        return {"current_working_directory": self.path()}

    @function()
    def ls(self, a: Any = False) -> Any:
        shown = [name for name in self._names if a or not name.startswith(".")]
        return {"current_directory_content": shown}

    @function()
    def cd(self, folder: Any) -> Any:
        if self.version == "v4":
            folder = folder.rstrip("/")
        if folder == "..":
            return self._up()
        if folder == ".":
            return {"current_working_directory": self._here["name"]}
        target = self._target(folder)
        if isinstance(target, dict):
            return target
        self.state["_cwd"] = target
        return {"current_working_directory": self._here["name"]}

    def _up(self) -> Any:
        if self._here["parent"] is None:
            current = "Cuurent" if self.version == "v3" else "Current"
            return refused(f"{current} directory is already the root. Cannot go back.")
        self.state["_cwd"] = self._here["parent"]
        return {}

    def _target(self, folder: Any) -> Any:
        """The number of the directory that a name or path means, or why there is none."""
        if self.version == "v4":
            if folder == "":
                return self.state["_root"]
            if "/" in folder:
                only = "Unsupported path. Only one folder level at a time is supported."
                return refused(f"cd: {folder}: {only}")
            target = self._directory(self._here, folder)
            return target or refused(f"cd: '{folder}': No such file or directory")
        if folder == "/":
            return self.state["_root"]
        target = self._walked(folder)
        only = "No such directory. You cannot use path to change directory."
        return target or refused(f"cd: {folder}: {only}")

    def _walked(self, path: Any) -> str | None:
        """The directory at the end of a path; version 3 follows paths."""
        number: str | None = self.state["_root" if path.startswith("/") else "_cwd"]
        for part in path.strip("/").split("/"):
            if part == ".":
                continue
            number = self._directory(self._nodes[number], part)
            if number is None:
                return None
        return number

    @function()
    def mkdir(self, dir_name: Any) -> Any:
        if dir_name in self._names:
            return refused(f"mkdir: cannot create directory '{dir_name}': File exists")
        if _is_invalid(dir_name):
            return refused(f"mkdir: cannot create directory '{dir_name}': Invalid character")
        self._names[dir_name] = add_directory(self._nodes, dir_name, self.state["_cwd"])
        return None

    @function()
    def touch(self, file_name: Any) -> Any:
        if file_name in self._names:
            return refused(f"touch: cannot touch '{file_name}': File exists")
        if _is_invalid(file_name):
            return refused(f"touch: cannot touch '{file_name}': Invalid character")
        self._names[file_name] = add_file(self._nodes, file_name, "")
        return None

    @function()
    def echo(self, content: Any, file_name: Any = None) -> Any:
        if file_name is None:
            return {"terminal_output": content}
        doing = "echo: cannot touch" if self.version == "v3" else "echo: cannot write to"
        if _is_invalid(file_name):
            return refused(f"{doing} '{file_name}': Invalid character")
        if not file_name:
            return {"terminal_output": content}
        node = self._node(file_name)
        if node is None:
            if self.version == "v4":
                return refused(f"{doing} '{file_name}': No such file")
            self._names[file_name] = add_file(self._nodes, file_name, content)
        elif node["type"] == "directory":
            raise AttributeError("'Directory' object has no attribute '_write'")
        else:
            node["content"] = content
        return None

    @function()
    def cat(self, file_name: Any) -> Any:
        if _is_invalid(file_name):
            return refused(f"cat: '{file_name}': Invalid character")
        quoted = file_name if self.version == "v3" else f"'{file_name}'"
        node = self._node(file_name)
        if node is None:
            return refused(f"cat: {quoted}: No such file or directory")
        if node["type"] == "directory":
            return refused(f"cat: {quoted}: Is a directory")
        return {"file_content": node["content"]}

    @function()
    def find(self, path: Any = ".", name: Any = None) -> Any:
        if self.version == "v3":
            return {"matches": list(self._found(self._here, path, name))}
        where = self._looked_in(path)
        if where is None:
            return refused(f"find: '{path}': No such file or directory")
        return {"matches": list(self._found(where, path.rstrip("/"), name))}

    def _looked_in(self, path: Any) -> Node | None:
        """The directory in which version 4 searches; `..` is not understood, `/` is where one is."""
        stripped = path.strip("/")
        if path == "":
            return None
        directory = self._here
        for part in stripped.split("/") if stripped else ():
            if part == ".":
                continue
            number = self._directory(directory, part)
            if number is None:
                return None
            directory = self._nodes[number]
        return directory

    def _found(self, directory: Node, path: Any, name: Any) -> Iterator[str]:
        for child, number in directory["contents"].items():
            below = f"{path.rstrip('/')}/{child}"
            if name is None or name in child:
                yield below
            if self._nodes[number]["type"] == "directory":
                yield from self._found(self._nodes[number], below, name)

    @function()
    def wc(self, file_name: Any, mode: Any = "l") -> Any:
        if mode not in list(_MODES):
            return refused(f"wc: invalid mode '{mode}'")
        file = self._file(file_name)
        if file is None:
            return refused(f"wc: {file_name}: No such file or directory")
        content = file["content"]
        counted = {
            "l": lambda: content.splitlines(),
            "w": lambda: content.split(),
            "c": lambda: content,
        }
        return {"count": len(counted[mode]()), "type": _MODES[mode]}

    @function()
    def sort(self, file_name: Any) -> Any:
        file = self._file(file_name)
        if file is None:
            return refused(f"sort: {file_name}: No such file or directory")
        return {"sorted_content": "\n".join(sorted(file["content"].splitlines()))}

    @function()
    def grep(self, file_name: Any, pattern: Any) -> Any:
        file = self._file(file_name)
        if file is None:
            return refused(f"grep: {file_name}: No such file or directory")
        return {"matching_lines": [s for s in file["content"].splitlines() if pattern in s]}

    @function()
    def du(self, human_readable: Any = False) -> Any:
        size = self._size(self._here)
        if not human_readable:
            return {"disk_usage": f"{size} bytes"}
        scaled = float(size)
        for unit in _UNITS:
            if scaled < _KIB:
                return {"disk_usage": f"{scaled:.2f} {unit}"}
            scaled /= _KIB
        return {"disk_usage": f"{scaled:.2f} PB"}

    def _size(self, node: Node) -> int:
        if node["type"] == "file":
            return len(node["content"].encode("utf-8"))
        return sum(self._size(self._nodes[number]) for number in node["contents"].values())

    @function()
    def tail(self, file_name: Any, lines: Any = 10) -> Any:
        file = self._file(file_name)
        if file is None:
            return refused(f"tail: {file_name}: No such file or directory")
        content = file["content"].splitlines()
        shown = min(lines, len(content))
        return {"last_lines": "\n".join(content[-shown:])}

    @function()
    def diff(self, file_name1: Any, file_name2: Any) -> Any:
        first = self._file(file_name1)
        second = None if first is None else self._file(file_name2)
        if first is None or second is None:
            return refused(f"diff: {file_name1} or {file_name2}: No such file or directory")
        pairs = zip(first["content"].splitlines(), second["content"].splitlines(), strict=False)
        lines = [f"- {one}\n+ {two}" for one, two in pairs if one != two]
        return {"diff_lines": "\n".join(lines)}

    @function()
    def mv(self, source: Any, destination: Any) -> Any:
        return self._carry(source, destination, "mv", "move", "moved")

    @function()
    def cp(self, source: Any, destination: Any) -> Any:
        return self._carry(source, destination, "cp", "copy", "copied")

    def _carry(self, source: Any, destination: Any, tool: str, do: str, did: str) -> Any:
        if source not in self._names:
            return refused(f"{tool}: cannot {do} '{source}': No such file or directory")
        if "/" in destination:
            return refused(f"{tool}: {self._no_path(tool)}")
        there = self._node(destination)
        if there is None:
            number = self._renewed(source, destination, self.state["_cwd"], self._here)
            if tool == "mv":
                del self._names[source]
            self._names[destination] = number
            return {"result": f"'{source}' {did} to '{destination}'"}
        if there["type"] != "directory":
            return refused(f"{tool}: cannot {do} '{source}' to '{destination}': Not a directory")
        inside = f"{destination}/{source}"
        if source in there["contents"]:
            return refused(f"{tool}: cannot {do} '{source}' to '{inside}': File exists")
        self._renewed(source, source, str(self._item(destination)), there)
        if tool == "mv":
            del self._names[source]
        return {"result": f"'{source}' {did} to '{inside}'"}

    def _no_path(self, tool: str) -> str:
        if self.version == "v4":
            return "path not allowed in destination. Provide only a file or directory name."
        first = "no path allowed" if tool == "mv" else "don't allow path"
        only = "Only file name and folder name is supported for this operation."
        return f"{first} in destination. {only}"

    def _renewed(self, source: str, name: str, parent: str, directory: Node) -> str:
        """Put a node into a directory under a name: a new one, which shares what is in the old one."""
        old = self._nodes[str(self._item(source))]
        if old["type"] == "file":
            number = add_file(self._nodes, name, old["content"])
            directory["contents"][name] = number
            return number
        number = add_directory(self._nodes, name, parent)
        directory["contents"][name] = number
        self._nodes[number]["contents"] = dict(old["contents"])
        return number

    @function()
    def rm(self, file_name: Any) -> Any:
        if file_name not in self._names:
            return refused(f"rm: cannot remove '{file_name}': No such file or directory")
        del self._names[file_name]
        return {"result": f"'{file_name}' removed"}

    @function()
    def rmdir(self, dir_name: Any) -> Any:
        node = self._node(dir_name)
        if node is None:
            return refused(f"rmdir: cannot remove '{dir_name}': No such file or directory")
        if node["type"] != "directory":
            return refused(f"rmdir: cannot remove '{dir_name}': Not a directory")
        if len(node["contents"]):
            doing = "failed to remove" if self.version == "v3" else "cannot remove"
            return refused(f"rmdir: {doing} '{dir_name}': Directory not empty")
        del self._names[dir_name]
        return {"result": f"'{dir_name}' removed"}


def _is_invalid(name: Any) -> bool:
    return any(letter in name for letter in _NOT_IN_NAMES)
