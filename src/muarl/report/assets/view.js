// The page of `muarl view`.

const page = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("page");
const POLL_MS = 1500;
const ENOUGH = 500;  // episodes that are worth beginning with

function viewMasthead({ run }) {
  const facts = [["domain", run.domain], ["seed", run.seed], ["engine", run.engine], ["model", run.model], ["when", run.when]].filter(([, value]) => value);
  return h("div", { class: "masthead" },
    h("div", {}, h("p", { class: "brand" }, "muarl view"), h("h1", {}, run.name)),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    themeButton());
}

/** Draw the episodes once there are some; then say what came since. */
async function follow() {
  let drawn = null;
  const enough = Object.values(readLink()?.query || {}).some(Boolean) ? Infinity : ENOUGH;  // what a link looks for may be read last
  const news = h("div", { class: "news", role: "status" });
  const draw = (facets) => {
    drawn = facets;
    news.replaceChildren();
    main.replaceChildren(news, guarded((source) => episodesSection(source, null), servedSource(facets)));
  };
  for (;;) {
    try {
      const { facets, progress, problem } = await ask("run");
      const isWhole = progress >= 1;
      if (problem) news.replaceChildren(h("p", { class: "notices" }, problem));
      if (!drawn && (isWhole || facets.total >= enough)) draw(facets);
      else if (drawn && !drawn.total && facets.total) draw(facets);
      else if (!drawn) main.replaceChildren(h("p", { class: "empty", role: "status" }, `Reading the journal: ${percent(progress)}`));
      const more = drawn ? facets.total - drawn.total : 0;
      if (more > 0 && !problem) {
        news.replaceChildren(h("p", { class: "note" }, isWhole ? `${number(more)} more episodes. ` : `Still reading the journal: ${percent(progress)}. ${number(more)} more episodes. `,
          h("button", { type: "button", class: "small", on: { click: () => { draw(facets); main.focus(); } } }, "Show them")));
      }
    } catch (error) {
      news.replaceChildren(h("p", { class: "notices" }, error.message));
      if (!drawn) main.replaceChildren(news);
    }
    await new Promise((wake) => { setTimeout(wake, POLL_MS); });
  }
}

document.getElementById("masthead").append(guarded(viewMasthead, page));
follow();
