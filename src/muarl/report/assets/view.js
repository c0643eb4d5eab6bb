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

/** What came since the episodes were drawn, or went wrong; the same is said once, and its button stays. */
function newsLine(onShow) {
  const words = h("span");
  const show = h("button", { type: "button", class: "small", on: { click: onShow } }, "Show them");
  const line = h("p", {}, words, show);
  const say = (text, kind = "note", offers = false) => {
    if (words.textContent !== text) words.textContent = text;
    line.className = text && kind;
    show.hidden = !offers;
  };
  say("");
  return { element: h("div", { class: "news", role: "status" }, line), say };
}

/** Draw the episodes once there are some; then say what came since. */
async function follow() {
  let drawn = null;
  let latest = null;
  const enough = Object.values(readLink()?.query || {}).some(Boolean) ? Infinity : ENOUGH;  // what a link looks for may be read last
  const draw = () => {
    drawn = latest;
    news.say("");
    main.replaceChildren(news.element, guarded((source) => episodesSection(source, null), servedSource(drawn)));
  };
  const news = newsLine(() => { draw(); main.focus(); });
  for (;;) {
    try {
      const { facets, progress, problem } = await ask("run");
      latest = facets;
      const isWhole = progress >= 1;
      if (!drawn && (isWhole || problem || facets.total >= enough)) draw();
      else if (drawn && !drawn.total && facets.total) draw();
      else if (!drawn) main.replaceChildren(h("p", { class: "empty", role: "status" }, `Reading the journal: ${percent(progress)}`));
      const more = drawn ? facets.total - drawn.total : 0;
      if (problem) news.say(problem, "notices");
      else if (more > 0) news.say(`${isWhole ? "" : `Still reading the journal: ${percent(progress)}. `}${number(more)} more episodes. `, "note", true);
      else news.say("");
    } catch (error) {
      news.say(error.message, "notices");
      if (!drawn) main.replaceChildren(news.element);
    }
    await new Promise((wake) => { setTimeout(wake, POLL_MS); });
  }
}

document.getElementById("masthead").append(guarded(viewMasthead, page));
follow();
