// Put the page together.

function runSection({ run }) {
  return h("section", { id: "run" }, h("h2", {}, "The run"),
    run.versions.length > 0 && h("details", { class: "fold" }, h("summary", {}, "Versions and machine"),
      h("table", { class: "numbers text" }, h("tbody", {}, run.versions.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)))))),
    h("details", { class: "fold" }, h("summary", {}, "Resolved spec"), h("pre", {}, run.spec)));
}

function notices(data) {
  const list = data.run.notices;
  return list.length ? h("ul", { class: "notices" }, list.map((notice) => h("li", {}, notice))) : "";
}

const page = JSON.parse(document.getElementById("data").textContent);
const isOne = page.runs.length === 1;

function drawRun(data, at) {
  const episodes = (run) => episodesSection(embeddedSource(run, at), isOne ? null : run.run.name);
  const users = (run) => usersSection(run, page);
  return [notices, summarySection, trainingSection, evaluationsSection, users, episodes, runSection].map((draw) => guarded(draw, data));
}

// What is folded for a reader is not for paper.
addEventListener("beforeprint", () => document.querySelectorAll("#users details").forEach((fold) => { fold.open = true; }));
document.getElementById("masthead").append(guarded(isOne ? (all) => masthead(all.runs[0]) : runsMasthead, page));
document.getElementById("page").replaceChildren(...(isOne ? drawRun(page.runs[0], 0)
  : [guarded(runsSection, page), ...guarded((all) => runTabs(all.runs, drawRun), page)]));
