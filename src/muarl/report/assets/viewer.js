// The episode viewer: a list with filters, and one dialogue with everything that is known of it.

const VERDICT_MARKS = { passed: "✓", failed: "✗", fault: "!" };

function viewerSection(data) {
  const section = h("section", { id: "episodes" }, h("h2", {}, "Episodes"));
  if (!data.episodes.length) {
    section.append(h("p", { class: "empty" }, "No episode to show."));
    return section;
  }
  const state = { phase: "", verdict: "", outcome: "", persona: "", iteration: "", text: "", open: null };
  const list = h("ol", { class: "list" });
  const count = h("p", { class: "note", role: "status" });
  const dialogue = h("article", { class: "dialogue", tabindex: -1, "aria-label": "Dialogue" });
  const rows = new Map();

  const open = (episode, focus) => {
    rows.get(state.open)?.removeAttribute("aria-current");
    state.open = episode;
    rows.get(episode)?.setAttribute("aria-current", "true");
    dialogue.replaceChildren(...dialogueView(episode, data));
    if (focus) {
      history.replaceState(null, "", linkTo(episode));
      dialogue.scrollTop = 0;
      if (matchMedia("(max-width: 800px)").matches) dialogue.scrollIntoView();
    }
  };
  const refresh = () => {
    const found = data.episodes.filter((episode) => matches(episode, state));
    rows.clear();
    list.replaceChildren(...found.map((episode) => {
      const button = listRow(episode);
      button.addEventListener("click", () => open(episode, true));
      rows.set(episode, button);
      return h("li", {}, button);
    }));
    rows.get(state.open)?.setAttribute("aria-current", "true");
    count.textContent = `${found.length} of ${data.episodes.length} shown episodes`;
  };
  list.addEventListener("keydown", (event) => {
    const direction = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const buttons = [...rows.values()];
    const next = buttons[buttons.indexOf(document.activeElement) + direction];
    if (next) { next.focus(); next.click(); }
  });
  refresh();
  section.append(shownTable(data.shown),
    h("div", { class: "viewer" }, h("div", { class: "browse" }, filters(data.episodes, state, refresh), count, list), dialogue));
  const linked = (episode) => location.hash === linkTo(episode);
  open(data.episodes.find(linked) || data.episodes[0], false);
  return section;
}

function linkTo(episode) {
  return `#episode=${encodeURIComponent(episode.id)}`;
}

function filters(episodes, state, refresh) {
  const select = (key, label, names = (value) => value) => {
    const values = [...new Set(episodes.map((episode) => episode[key]))].sort((a, b) => (a > b ? 1 : -1));
    const change = (event) => { state[key] = event.target.value; refresh(); };
    return h("label", {}, label, h("select", { on: { change } }, h("option", { value: "" }, "all"),
      values.map((value) => h("option", { value }, names(value)))));
  };
  const search = (event) => { state.text = event.target.value.toLowerCase(); refresh(); };
  return h("div", { class: "filters" },
    select("phase", "phase"), select("verdict", "reward", (v) => ({ passed: "1: passed", failed: "below 1: failed", fault: "none: fault" })[v]),
    select("outcome", "outcome"), select("persona", "persona"), select("iteration", "iteration"),
    h("label", { class: "search" }, "text", h("input", { type: "search", placeholder: "any words, ids, tools", on: { input: search } })));
}

function matches(episode, state) {
  return ["phase", "verdict", "outcome", "persona", "iteration"].every((key) => state[key] === "" || String(episode[key]) === state[key])
    && (!state.text || state.text.split(/\s+/).every((word) => haystack(episode).includes(word)));
}

const haystacks = new Map();

/** Everything said and done in an episode, in lower case; made once. */
function haystack(episode) {
  if (!haystacks.has(episode)) {
    const { samples, system, tools, ...rest } = episode;
    const strings = [];
    JSON.stringify(rest, (key, value) => { if (typeof value === "string") strings.push(value); return value; });
    haystacks.set(episode, strings.join("\n").toLowerCase());
  }
  return haystacks.get(episode);
}

function listRow(episode) {
  const place = episode.phase === "train" ? `iteration ${episode.iteration}` : episode.phase;
  return h("button", { type: "button", class: `row ${episode.verdict}` },
    h("span", { class: "verdict", title: episode.verdict }, VERDICT_MARKS[episode.verdict]),
    h("span", { class: "task" }, episode.task),
    h("span", { class: "meta" }, `${episode.persona} · ${place} · ${episode.turns.length} turns`));
}

function shownTable(shown) {
  const total = shown.reduce((sum, row) => sum + row.total, 0);
  const visible = shown.reduce((sum, row) => sum + row.shown, 0);
  const phases = [...new Set(shown.map((row) => row.phase))];
  const cell = (phase, verdict) => {
    const row = shown.find((one) => one.phase === phase && one.verdict === verdict);
    return h("td", {}, row ? `${number(row.shown)} of ${number(row.total)}` : "");
  };
  return h("details", { class: "fold" },
    h("summary", {}, `${number(visible)} of ${number(total)} episodes are in this page; chosen by a hash of their key.`),
    h("table", { class: "numbers" }, h("thead", {}, h("tr", {}, ["phase", "failed", "passed", "faults"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, phases.map((phase) => h("tr", {}, h("th", { scope: "row" }, phase), ["failed", "passed", "fault"].map((verdict) => cell(phase, verdict)))))));
}

// What she did, the knobs that made her do it, and what her guard threw away before.
function actOf(reply) {
  return [reply.act, reply.knobs?.length ? `knobs: ${reply.knobs.join(", ")}` : null,
    reply.breaches?.length ? `sampled again: ${reply.breaches.join(", ")}` : null].filter(Boolean).join(" · ");
}

function dialogueView(episode, data) {
  const strips = episode.samples.map((sample, i) => tokenStrip(sample, i, data.tokens));
  return [
    h("header", {},
      h("h3", {}, h("span", { class: `verdict ${episode.verdict}` }, VERDICT_MARKS[episode.verdict]), ` ${episode.task}`),
      h("p", { class: "meta" }, [episode.persona, episode.user, episode.outcome.replaceAll("_", " "),
        episode.reward === null ? "not scored" : `reward ${number(episode.reward)}`, episode.id, `split ${episode.split}`,
        `task hash ${episode.task_hash}`,
        episode.content_hash ? `content hash ${episode.content_hash}` : null,
        episode.forks ? `${episode.forks} forks` : null].filter(Boolean).join(" · ")),
      episode.error && h("p", { class: "error" }, episode.error)),
    predicates(episode),
    h("details", { class: "fold" }, h("summary", {}, "System prompt"), h("pre", {}, data.systems[episode.system])),
    h("details", { class: "fold" }, h("summary", {}, `Tools (${data.toolsets[episode.tools].length})`),
      data.toolsets[episode.tools].map((tool) => h("div", { class: "tool" }, h("code", {}, tool.name), " ", tool.description, h("pre", {}, tool.parameters)))),
    replyView(episode.opening),
    episode.turns.flatMap((turn, i) => turnView(turn, i, episode, strips)),
    h("div", { class: "ending" }, `${episode.outcome.replaceAll("_", " ")}`),
    h("h4", {}, "World, first to last"),
    episode.changes.length ? changesView(episode.changes) : h("p", { class: "note" }, "Nothing changed."),
    strips.length > 0 && h("h4", {}, "Tokens"), strips.length > 0 && tokenLegend(),
    strips.map((strip) => strip.box),
  ].flat().filter(Boolean);
}

function predicates(episode) {
  const row = (result, kind) => {
    const applies = result.score !== null;
    const mark = !applies ? "–" : result.score >= 1 - 1e-6 ? "✓" : "✗";
    return h("tr", {}, h("td", { class: `verdict ${!applies ? "" : mark === "✓" ? "passed" : "failed"}` }, mark),
      h("th", { scope: "row" }, result.name), h("td", {}, applies ? number(result.score) : "n/a"), h("td", { class: "kind" }, kind), h("td", {}, result.reason, result.evidence ? h("q", {}, result.evidence) : null, result.caveat ? h("em", {}, ` (leaves out: ${result.caveat})`) : null));
  };
  if (!episode.rewards.length && !episode.metrics.length) return null;
  return h("div", { class: "scroll" }, h("table", { class: "predicates" },
    h("tbody", {}, episode.rewards.map((result) => row(result, "reward")), episode.metrics.map((result) => row(result, "metric")))));
}

function bubble(speaker, name, tag, ...content) {
  return h("div", { class: `bubble ${speaker}` },
    h("p", { class: "who" }, name, tag && h("span", { class: "tag" }, tag)), h("div", { class: "said" }, content));
}

function turnView(turn, index, episode, strips) {
  const sample = episode.samples[turn.sample];
  const tokens = sample && h("button", { type: "button", class: "link", title: "Show these tokens",
    on: { click: () => strips[turn.sample].point(turn.start) } }, tokenCount(sample, turn));
  const agent = h("div", { class: "bubble agent" },
    h("p", { class: "who" }, `agent, turn ${index + 1}`,
      turn.finish === "length" && h("span", { class: "tag bad" }, "cut at the token cap"), tokens),
    turn.reasoning && h("details", { class: "reasoning" }, h("summary", {}, "reasoning, hidden from the user"), h("div", { class: "said" }, turn.reasoning)),
    turn.text && h("div", { class: "said" }, turn.text),
    turn.calls.map(callView));
  return [agent,
    turn.changes.length > 0 && h("div", { class: "written" }, h("p", { class: "who" }, "world changed"), changesView(turn.changes)),
    turn.reply && replyView(turn.reply),
  ].flat().filter(Boolean);
}

function replyView(reply) {
  const deeds = reply.calls.length > 0 && h("div", { class: "bubble user" },
    h("p", { class: "who" }, "user, on her own device; the agent sees none of it"), reply.calls.map(callView));
  return [deeds,
    reply.changes.length > 0 && h("div", { class: "written" }, h("p", { class: "who" }, "world changed by the user"), changesView(reply.changes)),
    bubble("user", "user", actOf(reply), reply.text || h("em", {}, "(says nothing)"), reply.stop && h("em", { class: "leaves" }, " (leaves)")),
  ].filter(Boolean);
}

function tokenCount(sample, turn) {
  const sum = turnLogprob(sample, turn);
  return `${turn.end - turn.start} tokens${Number.isFinite(sum) ? `, log-prob ${sum.toFixed(2)}` : ""}, version ${turn.version}`;
}

function callView(call) {
  const bad = call.is_error || call.error;
  return h("div", { class: `call ${bad ? "bad" : ""}` },
    h("p", { class: "head" }, h("code", { class: "tool" }, call.name || "unreadable call"),
      h("span", { class: "arguments" }, call.arguments.map(([name, value]) => h("span", { class: "argument" }, h("i", {}, name), " ", h("code", {}, value))))),
    call.error && h("p", { class: "error" }, call.error),
    call.raw && h("pre", { class: "raw" }, call.raw),
    call.result === null ? h("p", { class: "note" }, "no answer") : h("div", { class: "result" },
      bad && h("span", { class: "tag bad" }, "error"), h("pre", {}, call.result)));
}

function changesView(changes) {
  return h("ul", { class: "changes" }, changes.map((change) => h("li", {},
    h("code", { class: "path" }, change.path), " ",
    change.kind !== "added" && h("del", {}, change.before), change.kind === "changed" && " → ",
    change.kind !== "removed" && h("ins", {}, change.after))));
}
