// One dialogue, with everything that is known of it.

const VERDICT_MARKS = { passed: "✓", failed: "✗", fault: "!" };

// What she did, the knobs that made her do it, and what her guard threw away before.
function actOf(reply) {
  return [reply.act, reply.knobs?.length ? `knobs: ${reply.knobs.join(", ")}` : null,
    reply.breaches?.length ? `sampled again: ${reply.breaches.join(", ")}` : null].filter(Boolean).join(" · ");
}

/**
 * The parts of one dialogue.
 *
 * opened: { row, episode, system, toolset, samples, tokens }, as a source opens it. `parting` is the turn
 * from which it differs from the one beside it, -1 its opening, if it does.
 */
function dialogueView(opened, { siblings = null, parting = null } = {}) {
  const { episode, system, toolset, samples, tokens } = opened;
  const { strips, parts } = tokenPart(episode, samples, tokens);
  const differs = (at) => at === parting && h("p", { class: "parting" }, "different from here on");
  return [
    h("header", {},
      h("h3", {}, h("span", { class: `verdict ${episode.verdict}` }, VERDICT_MARKS[episode.verdict]), ` ${episode.task}`),
      h("p", { class: "meta" }, [episode.persona, episode.user, episode.outcome.replaceAll("_", " "),
        episode.reward === null ? "not scored" : `reward ${number(episode.reward)}${aboveText(opened.row)}`, episode.id, `split ${episode.split}`,
        `task hash ${episode.task_hash}`,
        episode.content_hash ? `content hash ${episode.content_hash}` : null,
        episode.forks ? `${episode.forks} forks` : null].filter(Boolean).join(" · ")),
      episode.error && h("p", { class: "error" }, episode.error)),
    siblings,
    predicates(episode),
    h("details", { class: "fold" }, h("summary", {}, "System prompt"), h("pre", {}, system)),
    h("details", { class: "fold" }, h("summary", {}, `Tools (${toolset.length})`),
      toolset.map((tool) => h("div", { class: "tool" }, h("code", {}, tool.name), " ", tool.description, h("pre", {}, tool.parameters)))),
    differs(-1),
    replyView(episode.opening),
    episode.turns.flatMap((turn, i) => [differs(i), ...turnView(turn, i, episode, strips)]),
    h("p", { class: "ending" }, `${episode.outcome.replaceAll("_", " ")}`),
    h("h4", {}, "World, first to last"),
    episode.changes.length ? changesView(episode.changes) : h("p", { class: "note" }, "Nothing changed."),
    parts,
  ].flat(Infinity).filter(Boolean);
}

/** How an episode did against those it is compared with in training. */
function aboveText(row) {
  if (!isNumber(row?.above) || Math.abs(row.above) < 1e-9) return "";
  return `, ${number(Math.abs(row.above))} ${row.above > 0 ? "above" : "below"} its group`;
}

function predicates(episode) {
  const row = (result, kind) => {
    const applies = result.score !== null;
    const mark = !applies ? "–" : result.score >= 1 - 1e-6 ? "✓" : "✗";
    return h("tr", {}, h("td", { class: `verdict ${!applies ? "" : mark === "✓" ? "passed" : "failed"}` }, mark),
      h("th", { scope: "row" }, result.name), h("td", {}, applies ? number(result.score) : "n/a"), h("td", { class: "kind" }, kind), h("td", {}, result.reason, result.evidence ? h("q", {}, result.evidence) : null, result.caveat ? h("em", {}, ` (leaves out: ${result.caveat})`) : null));
  };
  if (!episode.rewards.length && !episode.metrics.length) return null;
  return scrolling("Predicates", h("table", { class: "predicates" },
    h("thead", { class: "unseen" }, h("tr", {}, ["result", "predicate", "score", "kind", "reason"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, episode.rewards.map((result) => row(result, "reward")), episode.metrics.map((result) => row(result, "metric")))));
}

function bubble(speaker, name, tag, ...content) {
  return h("div", { class: `bubble ${speaker}` },
    h("p", { class: "who" }, name, tag && h("span", { class: "tag" }, tag)), h("div", { class: "said" }, content));
}

function turnView(turn, index, episode, strips) {
  const strip = strips[turn.sample];
  const advantage = episode.advantages?.[index];
  const tokens = strip && h("button", { type: "button", class: "link", title: "Show these tokens",
    on: { click: () => strip.point(turn.start) } }, tokenCount(strip.tokens, turn));
  const agent = h("div", { class: "bubble agent" },
    h("p", { class: "who" }, `agent, turn ${index + 1}`,
      turn.finish === "length" && h("span", { class: "tag bad" }, "cut at the token cap"), tokens,
      isNumber(advantage) && h("span", { class: "tag" }, `advantage ${number(advantage)}`)),
    turn.reasoning && h("details", { class: "reasoning" }, h("summary", {}, "reasoning, hidden from the user"), h("div", { class: "said" }, turn.reasoning)),
    turn.text && h("div", { class: "said" }, turn.text),
    turn.calls.map(callView));
  return [agent,
    changedTogether(turn),
    turn.reply && replyView(turn.reply),
  ].flat().filter(Boolean);
}

function replyView(reply) {
  const deeds = reply.calls.length > 0 && h("div", { class: "bubble user" },
    h("p", { class: "who" }, "user, on her own device; the agent sees none of it"), reply.calls.map(callView));
  return [deeds,
    changedTogether(reply),
    bubble("user", "user", actOf(reply), reply.text || h("em", {}, "(says nothing)"), reply.stop && h("em", { class: "leaves" }, " (leaves)")),
  ].filter(Boolean);
}

function tokenCount(tokens, turn) {
  const sum = turnLogprob(tokens, turn);
  return `${turn.end - turn.start} tokens${Number.isFinite(sum) ? `, log-prob ${(Math.round(100 * sum) / 100 || 0).toFixed(2)}` : ""}, version ${turn.version}`;
}

function callView(call) {
  const bad = call.is_error || call.error;
  return h("div", { class: `call ${bad ? "bad" : ""}` },
    h("p", { class: "head" }, h("code", { class: "tool" }, call.name || "unreadable call"),
      h("span", { class: "arguments" }, call.arguments.map(([name, value]) => h("span", { class: "argument" }, h("i", {}, name), " ", h("code", {}, value))))),
    call.error && h("p", { class: "error" }, call.error),
    call.raw && h("pre", { class: "raw" }, call.raw),
    call.result === null ? h("p", { class: "note" }, "no answer") : h("div", { class: "result" },
      bad && h("span", { class: "tag bad" }, "error"), h("pre", {}, call.result)),
    call.changes?.length > 0 && h("div", { class: "written" }, h("p", { class: "who" }, "world changed"), changesView(call.changes)));
}

/** What the calls of a message changed, of records that do not say which of them did. */
function changedTogether({ calls, changes }) {
  return changes.length > 0 && h("div", { class: "written" },
    h("p", { class: "who" }, `world changed by these ${calls.length} calls`), changesView(changes));
}

function changesView(changes) {
  return h("ul", { class: "changes" }, changes.map((change) => h("li", {},
    h("code", { class: "path" }, change.path), " ",
    change.kind !== "added" && h("del", {}, change.before), change.kind === "changed" && " → ",
    change.kind !== "removed" && h("ins", {}, change.after))));
}
