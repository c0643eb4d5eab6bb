// Put the page together.

function runSection({ run }) {
  return h("section", { id: "run" }, h("h2", {}, "The run"),
    run.versions.length > 0 && h("details", { class: "fold" }, h("summary", {}, "Versions and machine"),
      h("table", { class: "numbers text" }, h("tbody", {}, run.versions.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)))))),
    h("details", { class: "fold" }, h("summary", {}, "Resolved spec"), h("pre", {}, run.spec)));
}

/** A section; if the data of one is not what it can draw, the others still stand. */
function guarded(draw, data) {
  try {
    return draw(data);
  } catch (error) {
    reportError(error);
    return h("p", { class: "empty error" }, `This part could not be drawn: ${error.message}`);
  }
}

function notices(data) {
  const list = data.run.notices;
  return list.length ? h("ul", { class: "notices" }, list.map((notice) => h("li", {}, notice))) : "";
}

const page = JSON.parse(document.getElementById("data").textContent);
document.getElementById("masthead").append(guarded(masthead, page));
document.getElementById("page").replaceChildren(
  ...[notices, summarySection, trainingSection, viewerSection, runSection].map((draw) => guarded(draw, page)));
