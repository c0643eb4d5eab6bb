// Dialogues side by side: those of a group, or one task at two steps.

const MOST_BESIDE = 4;

/** Where two dialogues part: the turn, -1 for the opening, null where they are the same. */
function partingOf(first, second) {
  if (said(first.opening) !== said(second.opening)) return -1;
  const shared = Math.min(first.turns.length, second.turns.length);
  for (let at = 0; at < shared; at++) {
    if (turnText(first.turns[at]) !== turnText(second.turns[at])) return at;
  }
  return first.turns.length === second.turns.length ? null : shared;
}

function said(reply) {
  return reply ? JSON.stringify([reply.text, reply.stop, reply.calls]) : "";
}

function turnText(turn) {
  return JSON.stringify([turn.text, turn.calls, said(turn.reply)]);
}

/** Rows to put beside the one that is open, as buttons: its group, and its task at other steps. */
function siblingsView(opened, beside, toggle) {
  const chip = (row, name) => {
    const isHere = row.id === opened.row.id;
    const pressed = beside.includes(row.id);
    return h("button", { type: "button", class: `chip ${row.verdict}`, "aria-pressed": isHere ? null : String(pressed), disabled: isHere, "data-row": row.id,
      title: isHere ? "this one" : row.id, on: { click: () => toggle(row.id) } },
      h("span", { class: "verdict" }, VERDICT_MARKS[row.verdict]), ` ${name}`, isNumber(row.reward) && row.reward > 0 && row.reward < 1 ? ` ${number(row.reward)}` : "");
  };
  const line = (title, rows, name) => rows.length > 0 && h("div", { class: "chips", role: "group", "aria-label": title },
    h("span", { class: "note" }, title), rows.map((row) => chip(row, name(row))));
  const parts = [
    opened.group.length > 1 && line(`beside it, of its group of ${opened.group.length}`, opened.group, (row) => `#${row.sample}`),
    line("beside it, the same task elsewhere", opened.across, placeOf),
  ].filter(Boolean);
  return parts.length ? h("div", { class: "siblings" }, parts) : null;
}

/** Columns, the first the one that the others are held against. */
function compareView(all, { only, close }) {
  const first = all[0].episode;
  return h("div", { class: "columns" }, all.map((opened, at) => {
    const parting = at ? partingOf(first, opened.episode) : null;
    const told = at === 0 ? "compared with" : parting === null ? "the same, word by word" : parting < 0 ? "differs from its opening on" : `differs from turn ${parting + 1} on`;
    return h("article", { class: "dialogue column", tabindex: 0, "aria-label": `Dialogue ${opened.row.id}` },
      h("div", { class: "columnhead" }, h("span", { class: "note" }, `${placeOf(opened.row)}, #${opened.row.sample} · ${told}`),
        h("button", { type: "button", class: "small", on: { click: () => only(opened.row.id) } }, "only this"),
        at > 0 && h("button", { type: "button", class: "small", on: { click: () => close(opened.row.id) } }, "close")),
      dialogueView(opened, { parting }));
  }));
}

function placeOf(row) {
  return row.phase === "train" ? `iteration ${row.iteration}` : row.phase;
}
