// Episodes that the server of `muarl view` finds and opens.

async function ask(path, query) {
  const parameters = new URLSearchParams(Object.entries(query || {}).filter(([, value]) => value !== ""));
  let response;
  try {
    response = await fetch(`${path}?${parameters}`, { credentials: "omit" });
  } catch {
    throw new Error("muarl view does not answer any more. Start it again, and open the address that it prints.");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function servedSource(facets) {
  return {
    facets,
    find: (query, offset, limit) => ask("episodes", { ...query, offset, limit }),
    open: (id) => ask("episode", { id }),
  };
}
