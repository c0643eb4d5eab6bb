"""The review page in a real browser: reviews are made with it as a person makes them, and taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from bad_input import InProcess
from headless_chromium import chromium_page
from synth_kit import write_synth

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
WORK = """
(() => {
  const [first, second] = document.querySelectorAll("article");
  first.querySelectorAll("input[type=radio]")[0].click();
  second.querySelectorAll("input[type=radio]")[1].click();
  const why = second.querySelector("input[type=text]");
  why.value = "it never asked";
  why.dispatchEvent(new Event("input"));
  document.getElementById("save").click();
  const nameless = document.getElementById("out").value;
  document.getElementById("reviewer").value = "ada";
  document.getElementById("save").click();
  return {
    nameless,
    saved: document.getElementById("out").value,
    count: document.getElementById("count").textContent,
    dialogues: document.querySelectorAll("article").length,
    rules: document.querySelector("dd").textContent,
    pwned: window.pwned ?? null,
  };
})()
"""


def test_a_person_reviews_on_the_page(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    muarl = InProcess(capfd)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    spec = write_synth(tmp_path / "shop")
    domain = tmp_path / "shop" / "domain.yaml"
    domain.write_text(domain.read_text().replace("rules: Be kind.", f"rules: '{HOSTILE}'"))
    assert muarl("synth", spec).code == 0
    assert muarl("review", "runs/synth", "--page", "page.html").code == 0

    async def visit() -> dict[str, Any]:
        async with chromium_page((tmp_path / "page.html").as_uri()) as page:
            seen: dict[str, Any] = await page.ask(WORK)
            outside = [
                url for url in page.requests if not url.startswith(("file:", "blob:", "data:"))
            ]
            return seen | {"complaints": page.complaints, "outside": outside}

    seen = anyio.run(visit)
    assert seen["complaints"] == []
    assert seen["outside"] == []
    assert seen["pwned"] is None
    assert seen["rules"] == HOSTILE, "a text is a text"
    assert (seen["dialogues"], seen["count"]) == (6, "2 of 6 reviewed")
    assert seen["nameless"] == "", "nobody's reviews are nobody's"
    Path("ada.json").write_text(seen["saved"])
    assert [one["comment"] for one in json.loads(seen["saved"])["reviews"]] == [
        "",
        "it never asked",
    ]
    done = muarl("review", "runs/synth", "--take", "ada.json")
    assert done.out.startswith("5 dialogues kept, 6 before"), done.lines
