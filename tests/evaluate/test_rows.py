"""What an evaluation says of each domain of several."""

from __future__ import annotations

from muarl.evaluate.seen import Seen, told_apart
from muarl.evaluate.summary import summarise
from muarl.record import PredicateResult
from muarl.testing import build_episode, build_key


def episode(task: str, sample: int, reward: float, share: float):
    key = build_key(task_id=task, sample=sample)
    return build_episode(key, reward=reward, metrics=[PredicateResult("partial", share, "")])


EPISODES = [
    *(episode("shop.a", 0, 1.0, 1.0), episode("shop.a", 1, 0.0, 0.5)),
    *(episode("shop.b", 0, 1.0, 1.0), episode("shop.b", 1, 1.0, 1.0)),
    *(episode("phone.a", 0, 0.0, 0.0), episode("phone.a", 1, 0.0, 0.5)),
]


def test_each_row_has_success_pass_k_and_metrics_of_its_own() -> None:
    rows = summarise(EPISODES, row_of=lambda task: task.split(".")[0]).by_row
    shop, phone = rows["shop"], rows["phone"]
    assert (shop.success.value, phone.success.value) == (0.75, 0.0)
    assert shop.pass_hat[2].value == 0.5  # a: 0 of 2, b: 2 of 2
    assert (shop.metrics["partial"].value, phone.metrics["partial"].value) == (0.875, 0.25)
    assert "pass^2 0.500" in str(shop)
    assert "partial 0.875" in str(shop)


def test_tasks_that_were_trained_on_have_rows_of_their_own() -> None:
    seen = Seen(3, {"shop.b": "shop.c"})
    row_of = told_apart(lambda task: task.split(".")[0], seen)
    rows = summarise(EPISODES, row_of=row_of).by_row
    assert list(rows) == ["phone", "shop", "shop (trained on)"]
    assert (rows["shop"].success.value, rows["shop (trained on)"].success.value) == (0.5, 1.0)
    assert told_apart(str.upper, None)("x") == "X"


def test_one_domain_has_no_rows() -> None:
    assert summarise(EPISODES).by_row == {}
