"""A helper thread works as long as its block, whatever way the block is left."""

from __future__ import annotations

import threading

import pytest

from muarl.helper_thread import helper_thread


@pytest.mark.parametrize("how", ["by its end", "by an error"])
def test_a_helper_works_while_the_block_is_open_and_has_ended_when_it_is_left(how: str) -> None:
    at_work = threading.Event()
    threads: list[threading.Thread] = []

    def work(ended: threading.Event) -> None:
        threads.append(threading.current_thread())
        at_work.set()
        ended.wait()

    def block() -> None:
        with helper_thread(work, "a helper"):
            at_work.wait()
            assert threads[0].is_alive()
            if how == "by an error":
                raise KeyError("the block's own")

    if how == "by an error":
        with pytest.raises(KeyError, match="the block's own"):
            block()
    else:
        block()
    (thread,) = threads
    assert thread.name == "a helper"
    assert not thread.is_alive()
