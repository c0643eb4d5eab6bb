r"""The journal: finished episodes on disk, before anybody uses them (law L9).

A file that only grows. All integers are little-endian:

    header   "\x89MUARLJ\n"  u32 format version
    frame    "\xc1EPI"  u32 length  u32 CRC-32 of (length, payload)  payload: msgpack of an Episode
    frame    ...

Byte 0xC1 occurs neither in UTF-8 nor as a type in msgpack, so a frame can be found again behind a
damaged one. That tells the two kinds of damage apart:

- nothing sound follows: the tail was torn when its writer was killed. Readers leave it out, and the
  next writer cuts it off;
- a sound frame follows: the file was damaged where it had been good. Nobody guesses: RecordError.

Durability: `append` returns when the operating system has the bytes, so a killed process loses
nothing. `sync`, which closing calls, returns when the disk has them; a power cut can cost what was
appended since, as a torn tail. Call it before something else on disk builds on the episodes.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self, TypeVar
from zlib import crc32

from muarl.errors import RecordError
from muarl.record.codec import decode_episode, decode_head, encode_episode
from muarl.record.episode import Episode, EpisodeHead

T = TypeVar("T")

_log = logging.getLogger(__name__)

FORMAT_VERSION = 1

_MAGIC = b"\x89MUARLJ\n"
_HEADER = _MAGIC + struct.pack("<I", FORMAT_VERSION)
_MARK = b"\xc1EPI"
_LENGTH = struct.Struct("<I")
_FRAME = struct.Struct("<4sII")
_CHUNK = 1 << 20


class JournalWriter:
    """Appends episodes to a journal; the only writer the file has while it is open.

    A context manager. Opening makes the file if it is not there, and cuts off a torn tail.

    Example:
        >>> with JournalWriter(folder / "episodes.journal") as journal:
        ...     journal.append(episode)
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._fd = -1
        self._end = 0

    def __enter__(self) -> Self:
        """Open the file and find its sound end.

        Raises:
            RecordError: It cannot be opened, another writer has it, it is no journal, or it is
                damaged elsewhere than at its tail.
        """
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            raise RecordError(
                f"{self.path}: cannot open the journal ({problem.strerror})"
            ) from problem
        try:
            _lock(self._fd, self.path)
            self._end = self._sound_end()
        except BaseException:
            os.close(self._fd)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Bring everything to the disk, then let the file go."""
        try:
            self.sync()
        finally:
            os.close(self._fd)
            self._fd = -1

    def append(self, episode: Episode) -> None:
        """Write one episode; when this returns, killing the process does not lose it.

        Raises:
            RecordError: The system refused (disk full). All earlier episodes are sound, and so is
                the next one that fits.
        """
        payload = encode_episode(episode)
        length = _LENGTH.pack(len(payload))
        crc = crc32(payload, crc32(length))
        self._write(_FRAME.pack(_MARK, len(payload), crc) + payload)

    def sync(self) -> None:
        """Return when the disk has every appended episode.

        Raises:
            RecordError: The disk refused.
        """
        try:
            os.fsync(self._fd)
        except OSError as problem:
            raise self._refused(problem) from problem

    def _write(self, data: bytes) -> None:
        """Write at the sound end, so that a write that failed half way is overwritten."""
        view = memoryview(data)
        at = self._end
        try:
            while view:
                count = os.pwrite(self._fd, view, at)
                view, at = view[count:], at + count
        except OSError as problem:
            raise self._refused(problem) from problem
        self._end = at

    def _refused(self, problem: OSError) -> RecordError:
        return RecordError(
            f"{self.path}: cannot write the journal ({problem.strerror}). Every episode before "
            "this one is safe. Make room or mend the disk, then resume the run"
        )

    def _sound_end(self) -> int:
        """Where the next frame goes; makes the header, cuts off a torn tail."""
        with open(self._fd, "rb", closefd=False) as file:
            if not _has_header(file, self.path):
                self._write(_HEADER)
                end = len(_HEADER)
            else:
                end = _end_of_frames(file, self.path)
            torn = file.seek(0, os.SEEK_END) - end
        if torn:
            _log.warning("cut off a torn record: journal=%s bytes=%d", self.path, torn)
            os.truncate(self._fd, end)
        return end


@contextmanager
def no_writer(path: Path | str) -> Iterator[None]:
    """Make sure that no writer has a journal while the block runs; it need not be there.

    Raises:
        RecordError: A writer has it, or it cannot be opened.
    """
    path = Path(path)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # NFS locks only what can be written
    except FileNotFoundError:
        yield
        return
    except OSError as problem:
        raise RecordError(f"{path}: cannot open the journal ({problem.strerror})") from problem
    try:
        _lock(fd, path)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, path: Path) -> None:
    # The lock belongs to the open file: it goes when this process goes, however it does.
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RecordError(
            f"{path}: another writer has this journal open. Wait until that run has "
            "ended, or give this one another folder"
        ) from None


def read_journal(path: Path | str) -> Iterator[Episode]:
    """Every episode of a journal, in the order they were finished, one at a time in memory.

    A torn tail is left out. The file may be in use by a writer: what is read is what was whole when
    the reader came to it.

    Raises:
        RecordError: There is no such file, it is no journal, it is of a newer version, or it is
            damaged elsewhere than at its tail.
    """
    return _read(Path(path), decode_episode)


def read_heads(path: Path | str) -> Iterator[EpisodeHead]:
    """What identifies each episode of a journal, in the same order; much cheaper to read.

    Raises:
        RecordError: As `read_journal`.
    """
    return _read(Path(path), decode_head)


def torn_bytes(path: Path | str) -> int:
    """How long what is left out at a journal's end is: a record whose writer was killed, or is at it.

    Raises:
        RecordError: As `read_journal`.
    """
    path = Path(path)
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        end = _end_of_frames(file, path) if _has_header(file, path) else 0
        return max(0, size - end)


class Stored(NamedTuple):
    """An episode, and where it lies.

    Attributes:
        start: Its first byte in the journal; what `read_at` finds it again by.
        end: One past its last; where the next one begins.
        episode: The episode.
    """

    start: int
    end: int
    episode: Episode


def read_stored(path: Path | str, after: int = 0) -> Iterator[Stored]:
    """As `read_journal`, with the place of each episode.

    Args:
        path: The journal.
        after: The `end` of the last episode that the caller knows; 0: from the first on.

    Raises:
        RecordError: As `read_journal`.
    """
    path = Path(path)
    with _opened(path) as file:
        if _has_header(file, path):
            for start, payload in _frames(file, path, max(after, len(_HEADER))):
                end = start + _FRAME.size + len(payload)
                yield Stored(start, end, _decoded(decode_episode, payload, path, start))


def read_at(path: Path | str, start: int) -> Episode:
    """The episode that begins at a byte, as `read_stored` told it.

    Raises:
        RecordError: None does: the journal is another one by now, or damaged there.
    """
    path = Path(path)
    with _opened(path) as file:
        payload = _payload_at(file, start)
    if payload is None:
        raise RecordError(f"{path}: no episode begins at byte {start}")
    return _decoded(decode_episode, payload, path, start)


def _read(path: Path, decode: Callable[[bytes], T]) -> Iterator[T]:
    with _opened(path) as file:
        if not _has_header(file, path):
            return
        for start, payload in _frames(file, path):
            yield _decoded(decode, payload, path, start)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as problem:
        raise RecordError(f"{path}: cannot open the journal ({problem.strerror})") from problem


def _decoded(decode: Callable[[bytes], T], payload: bytes, path: Path, start: int) -> T:
    try:
        return decode(payload)
    except RecordError as problem:
        raise RecordError(f"{path}: at byte {start}: {problem}") from problem


def _has_header(file: BinaryIO, path: Path) -> bool:
    """Read the header; False where the first writer was killed before it had written it all.

    Raises:
        RecordError: It is another file's, or a newer journal's.
    """
    header = file.read(len(_HEADER))
    if header == _HEADER:
        return True
    if len(header) < len(_HEADER) and _HEADER.startswith(header):
        return False
    if len(header) < len(_HEADER) or not header.startswith(_MAGIC):
        raise RecordError(
            f"{path}: not a journal of muarl; expected a file that `muarl` wrote, "
            "such as the episodes of a run folder"
        )
    (version,) = _LENGTH.unpack(header[len(_MAGIC) :])
    raise RecordError(
        f"{path}: the journal has format {version}; this muarl reads format {FORMAT_VERSION}. "
        "Upgrade muarl to read it"
    )


def _frames(file: BinaryIO, path: Path, start: int = len(_HEADER)) -> Iterator[tuple[int, bytes]]:
    """Each sound frame from one on: where it starts, and its payload. Stops at a torn tail.

    Raises:
        RecordError: A sound frame follows a damaged one.
    """
    while (payload := _payload_at(file, start)) is not None:
        yield start, payload
        start += _FRAME.size + len(payload)
    sound = _sound_frame_after(file, start)
    if sound is not None:
        raise RecordError(
            f"{path}: damaged from byte {start} to byte {sound}, with sound episodes behind it. "
            f"Restore the file from a copy, or keep what comes before with "
            f"`truncate --size={start} {path}`"
        )


def _end_of_frames(file: BinaryIO, path: Path) -> int:
    """Where the last sound frame ends."""
    end = len(_HEADER)
    for start, payload in _frames(file, path):
        end = start + _FRAME.size + len(payload)
    return end


def _payload_at(file: BinaryIO, start: int) -> bytes | None:
    """The payload of the frame that starts at `start`, or None if no sound frame does."""
    file.seek(start)
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    mark, length, crc = _FRAME.unpack(head)
    # A length that was damaged must not make us ask for gigabytes.
    if mark != _MARK or length > os.fstat(file.fileno()).st_size - start - _FRAME.size:
        return None
    payload = file.read(length)
    whole = len(payload) == length and crc32(payload, crc32(_LENGTH.pack(length))) == crc
    return payload if whole else None


def _sound_frame_after(file: BinaryIO, start: int) -> int | None:
    """Where the first sound frame behind `start` begins, or None if there is none."""
    at = start + 1
    while True:
        file.seek(at)
        chunk = file.read(_CHUNK)
        found = chunk.find(_MARK)
        if found >= 0:
            at += found
            if _payload_at(file, at) is not None:
                return at
            at += 1
        elif len(chunk) < len(_MARK):
            return None
        else:
            # A mark may lie across two chunks.
            at += len(chunk) - len(_MARK) + 1
