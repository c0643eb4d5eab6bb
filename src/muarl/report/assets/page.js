// Put the page together.

function reproduction(run) {
  return h("section", { id: "run" }, h("h2", {}, "The run"),
    run.versions.length > 0 && h("details", { class: "fold" }, h("summary", {}, "Versions and machine"),
      h("table", { class: "numbers text" }, h("tbody", {}, run.versions.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)))))),
    h("details", { class: "fold" }, h("summary", {}, "Resolved spec"), h("pre", {}, run.spec)));
}

function assemble() {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.getElementById("masthead").append(...masthead(data));
  const notices = data.run.notices.length > 0 && h("ul", { class: "notices" }, data.run.notices.map((notice) => h("li", {}, notice)));
  document.getElementById("page").replaceChildren(...[notices, summarySection(data), trainingSection(data),
    viewerSection(data), reproduction(data.run)].filter(Boolean));
}

assemble();
