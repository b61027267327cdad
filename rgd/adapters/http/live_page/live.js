// The live page: draws each snapshot of /v1/live, asks for nothing but this daemon, and changes nothing.
// The token is a variable of this module: it is in no storage, no cookie and no address.
const ROUNDS_SILENT = 2.5; // a daemon without a snapshot for so many rounds is stale
const SILENT_MIN_MS = 2500;
const FIRST_MS = 5000;
const RETRY_MS = [300, 500, 1000, 2000];
const HIDDEN_MS = 60_000; // a page that nobody sees gives its stream to others
const CHART_MS = 600_000;
const CHART_ROWS = 40;

const at = (id) => document.getElementById(id);
let token = "";
let newest = null; // the snapshot that was received last, and when
let receivedAt = 0;
let isPaused = false;
let isStale = false;
let seenEvent = -1;
let events = [];
let found = null; // rows that the daemon was searched for
let connection = null;
let wake = () => {};

// Words.

const plain = (value, digits = 1) =>
  value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) >= 1 ? digits : 3 }).replace(/^-0$/, "0");
const count = (value) => value.toLocaleString("en-US");
const show = (value, isBytes) => {
  if (value === null) return "-";
  if (!isBytes || Math.abs(value) < 1000) return plain(value);
  let prefix = "";
  for (const larger of "kMGTP") {
    if (Math.abs(value) < 1000) break;
    [value, prefix] = [value / 1000, larger];
  }
  return `${plain(value, 2)}${prefix}B`;
};
const many = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;
const span = (seconds) =>
  seconds < 100 ? `${seconds.toFixed(1)} s` : seconds < 6000 ? `${Math.round(seconds / 60)} min` : seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
const isBytes = (row) => row.dimension === "bytes";

// Elements. Texts are set as texts, so that no name is markup.

const put = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};
const make = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const draw = (name, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
// Children by key: those that stay are the same nodes, so that focus and selection stay too.
const keyed = (parent, items, keyOf, build, update) => {
  const old = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  const isHeld = parent.matches(":hover, :focus-within");
  const place = new Map([...old.keys()].map((key, index) => [key, index]));
  const placeOf = (item) => place.get(keyOf(item)) ?? Infinity;
  const ordered = isHeld ? [...items].sort((one, other) => placeOf(one) - placeOf(other) || 0) : items;
  const nodes = ordered.map((item) => {
    const key = keyOf(item);
    const node = old.get(key) ?? build(item);
    node.dataset.key = key;
    old.delete(key);
    update(node, item);
    return node;
  });
  for (const node of old.values()) node.remove();
  nodes.forEach((node, index) => {
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] ?? null);
  });
};
const table = (caption, heads, words, rows, foot) => {
  const cell = (text, index, tag = "td") => make(tag, index < words ? { class: "text" } : {}, text);
  const line = (cells) => make("tr", {}, ...cells.map((text, index) => (index ? cell(text, index) : make("th", { scope: "row" }, text))));
  const body = make("table", {},
    make("thead", {}, make("tr", {}, ...heads.map((head, index) => make("th", { scope: "col", ...(index < words ? { class: "text" } : {}) }, head)))),
    make("tbody", {}, ...rows.map(line)));
  if (foot) body.append(make("tfoot", {}, line(foot)));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, body);
};
const colour = (broker) => (newest?.coloured.indexOf(broker) ?? -1) + 1;

// The daemon.

const ask = async (path) => {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(FIRST_MS) });
  const body = await response.json();
  if (!response.ok) throw new Error(body.reason ?? response.statusText);
  return body;
};
const tokenOf = (why) =>
  new Promise((given) => {
    const form = at("ask-token");
    if (why) put(at("token-why"), `${why}. The token stays in this page's memory and is gone when the page is closed.`);
    form.hidden = false;
    at("live").hidden = true;
    at("token").focus();
    state("", "waiting for a token");
    put(at("verdict"), "This daemon shows itself to those who have a token");
    form.onsubmit = (submitted) => {
      submitted.preventDefault();
      token = at("token").value.trim();
      at("token").value = "";
      form.hidden = true;
      given();
    };
  });
// One stream, from its beginning to its end; returns how long to wait before the next one, or null for the usual time.
const stream = async (received) => {
  connection = new AbortController();
  let timer = setTimeout(() => connection.abort(), FIRST_MS);
  try {
    const headers = { Accept: "text/event-stream", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const response = await fetch("v1/live", { headers, cache: "no-store", signal: connection.signal });
    if (response.status === 401 || response.status === 403) {
      clearTimeout(timer);
      await tokenOf((await response.json()).reason);
      return 0;
    }
    if (!response.ok) {
      const body = await response.json();
      stale(body.reason);
      return 1000 * Number(response.headers.get("Retry-After") ?? 1);
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return null;
      const messages = (text + value).split("\n\n");
      text = messages.pop();
      for (const message of messages) received(JSON.parse(message.slice(message.indexOf("data: ") + 6)));
      if (messages.length) {
        clearTimeout(timer);
        timer = setTimeout(() => connection.abort(), Math.max(SILENT_MIN_MS, ROUNDS_SILENT * 1000 * newest.round_s));
      }
    }
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
};
const watch = async () => {
  if (document.documentElement.dataset.token === "needed") await tokenOf("");
  for (let failed = 0; ; ) {
    const before = newest;
    const wait = await stream((view) => {
      newest = view;
      receivedAt = Date.now();
      const isBack = isStale;
      isStale = false;
      if (!isPaused || isBack) render();
      if (isPaused && isBack) state("", `paused at ${clock(receivedAt)}`);
    });
    failed = newest === before ? failed + 1 : 0;
    if (wait === null && isHiddenLong) state("", `not watched since ${clock(receivedAt)}`);
    else if (wait === null) stale("this daemon does not answer");
    const pause = wait ?? RETRY_MS[Math.min(failed, RETRY_MS.length - 1)] * (0.8 + 0.4 * Math.random());
    await new Promise((done) => {
      const timer = setTimeout(done, pause);
      wake = () => (clearTimeout(timer), done());
    });
    while (document.hidden && isHiddenLong) await new Promise((done) => (wake = done));
  }
};
let isHiddenLong = false;
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  isHiddenLong = false;
  if (document.hidden) hiding = setTimeout(() => ((isHiddenLong = true), connection?.abort()), HIDDEN_MS);
  else wake();
});
addEventListener("online", () => wake());

// The state of the page itself.

const state = (which, text) => {
  at("state").className = `state ${which}`;
  put(at("state"), text);
};
const stale = (why) => {
  const since = newest ? `Stale since ${clock(receivedAt)}` : "No answer";
  if (!isStale) put(at("said"), `${since}: ${why}; trying again.`);
  isStale = true;
  seenEvent = -1;
  document.body.classList.toggle("stale-page", true);
  state("stale", since);
  at("verdict").className = "bad";
  put(at("verdict"), `${since}: ${why}; trying again.`);
  document.title = `stale: rgd ${newest?.broker ?? ""}`;
};
at("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  at("pause").ariaPressed = String(isPaused);
  put(at("pause"), isPaused ? "Resume" : "Pause");
  if (isPaused) state("", `paused at ${clock(receivedAt)}`);
  else if (newest) render();
});

// The snapshot.

const render = () => {
  const view = newest;
  document.body.classList.toggle("stale-page", false);
  at("live").hidden = at("pause").hidden = false;
  state("live", `live, ${clock(view.unix_ms)}`);
  document.title = `${view.verdict.level}: rgd ${view.broker}`;
  put(at("who"), `${view.broker} in ${view.cluster}`);
  put(at("version"), `rgd ${view.version}.`);
  const verdict = at("verdict");
  if (verdict.className !== view.verdict.level) put(at("said"), view.verdict.text);
  verdict.className = view.verdict.level;
  verdict.dataset.number = view.number;
  put(verdict, view.verdict.text);
  const degraded = at("degraded");
  degraded.hidden = !view.degraded.length;
  keyed(degraded, view.degraded, (note) => note, () => make("li"), put);
  renderBrokers(view.brokers);
  renderGroups();
  if (at("search").value && !isSearching) search();
  renderBeside(view);
  if (view.last_event !== seenEvent) loadEvents(view.last_event);
  if (openGroup) loadGroup(openGroup);
};

const renderBrokers = ({ members, total, silent, expected, gone }) => {
  const notes = [many(total, "member")];
  if (silent) notes.push(`${count(silent)} silent`);
  if (total < expected) notes.push(`${count(expected)} expected`);
  if (members.length < total) notes.push(`${members.length} shown`);
  put(at("brokers-count"), notes.join(", "));
  const items = [
    ...members,
    ...gone.map((one) => ({ broker: one.broker, ago: one.ago_s })),
  ];
  keyed(at("brokers"), items, (one) => `${one.broker} ${one.ago === undefined}`,
    (one) => make("li", {}, make("i", { class: `c${colour(one.broker)}` }), make("b", {}, one.broker), make("span")),
    (node, one) => {
      node.querySelector("i").className = `c${colour(one.broker)}`;
      Object.assign(node.dataset, { age: one.age_s ?? "", after: one.silent_after_s ?? "", self: one.self ?? "", gone: one.ago ?? "" });
      node.dataset.at = receivedAt;
    });
  age();
  keyed(at("brokers-table"), members, (one) => one.broker,
    () => make("tr", {}, make("th", { scope: "row" }), make("td", { class: "text" }), make("td"), make("td"), make("td")),
    (node, one) => {
      const is = [one.self ? "this daemon" : one.implementation === "stock" ? "a stock broker" : "a daemon", ...(one.silent ? ["silent"] : [])];
      [one.broker, is.join(", "), one.self ? "-" : span(one.age_s), span(one.since_s), count(one.rows)]
        .forEach((text, index) => put(node.cells[index], text));
    });
};
// Between two snapshots ages go on, so that a broker that falls silent shows at once.
const age = () => {
  for (const node of at("brokers").children) {
    const { age: known, after, self, gone, at: since } = node.dataset;
    const passed = (Date.now() - Number(since)) / 1000;
    const seconds = Number(known) + passed;
    const isSilent = !gone && self !== "true" && seconds > Number(after);
    node.className = gone ? "gone" : isSilent ? "silent" : "";
    put(node.lastChild, gone ? `gone ${span(Number(gone) + passed)}` : self === "true" ? "this daemon" : `${isSilent ? "silent " : ""}${span(seconds)}`);
  }
};
setInterval(() => isStale || isPaused || age(), 250);

const renderGroups = () => {
  const { rows, total, short, groups } = newest.groups;
  put(at("groups-count"), `${many(groups, "group")} with ${many(total, "quota")}, ${count(short)} short`);
  const words = at("search").value.toLowerCase().split(/\s+/);
  const has = (row) => words.every((word) => `${row.group} ${row.kind} ${row.dimension}`.toLowerCase().includes(word));
  const keyOf = (row) => `${row.group} ${row.kind} ${row.dimension}`;
  const known = new Set(rows.map(keyOf));
  const shown = [...rows.filter(has), ...(found ?? []).filter((row) => !known.has(keyOf(row)) && has(row))];
  keyed(at("groups-rows"), shown, keyOf, buildRow, updateRow);
  const more = at("groups-more");
  more.hidden = total <= rows.length && shown.length > 0;
  put(more, total <= rows.length ? "No group has these words."
    : words[0] ? `Among the ${rows.length} quotas under the most pressure, and those of groups whose name begins with the first word.`
    : `${count(total - rows.length)} more quotas have less pressure; search finds groups by the beginning of their name.`);
};
const buildRow = (row) => {
  const link = make("a", { href: `#group=${encodeURIComponent(row.group)}` }, row.group);
  const cell = (label) => make("td", { role: "cell", "data-label": label });
  return make("tr", { role: "row" },
    make("th", { scope: "row", role: "rowheader" }, link, make("small", {}, `${row.kind}, ${row.dimension}${row.shadow ? ", shadow" : ""}`)),
    make("td", { role: "cell", class: "picture" }, bar()),
    cell("wanted"), cell("admitted"), cell("quota"), cell("pressure"), cell("lowest ratio"),
    make("td", { role: "cell", class: "text refused", "data-label": "refused here" }));
};
const updateRow = (node, row) => {
  const cells = [...node.cells];
  updateBar(cells[1].firstChild, row);
  const refused = row.refused === null ? ["not known"]
    : Object.entries(row.refused).map(([level, rate]) => `${level.replace("_", " ")} ${show(rate, isBytes(row))}`);
  [show(row.wanted, isBytes(row)), show(row.admitted, isBytes(row)), show(row.quota, isBytes(row)), row.pressure.toFixed(2),
    row.lowest === null ? "-" : row.lowest.toFixed(2), refused.join(", ") || "-"]
    .forEach((text, index) => put(cells[index + 2], text));
  cells[6].className = row.lowest !== null && row.lowest < 0.5 ? "poor" : "";
  cells[6].title = row.lowest_broker ?? "";
  cells[7].className = `text refused${refused.length ? "" : " none"}`;
};
// A bar of 200 units: the quota is at 100, and twice the quota at the end.
const bar = () => draw("svg", { height: "20", role: "img" }, draw("title"), draw("g"));
const updateBar = (svg, row) => {
  const width = Math.max(120, svg.clientWidth || 200);
  const scale = (rate) => Math.min(width, (rate / Math.max(row.quota, 1e-3)) * (width / 2));
  const parts = [...row.brokers.map((part) => [colour(part.broker), part.admitted]), ...(row.others ? [[0, row.others.admitted]] : [])];
  const drawn = [];
  let end = 0;
  for (const [number, admitted] of parts) {
    const [x, next] = [scale(end), scale(end + admitted)];
    if (next - x > 0.2) drawn.push(draw("rect", { class: `b${number}`, x: x.toFixed(1), y: 3, width: (next - x).toFixed(1), height: 14 }));
    end += admitted;
  }
  const [from, to] = [scale(end), scale(Math.max(end, row.wanted))];
  if (to - from > 1) drawn.push(draw("rect", { class: "unmet", x: (from + 0.5).toFixed(1), y: 3.5, width: (to - from - 1).toFixed(1), height: 13 }));
  if (row.wanted > 2 * row.quota) drawn.push(draw("text", { class: "beyond", x: width + 2, y: 14 }, document.createTextNode("»")));
  drawn.push(draw("path", { class: "gridline", d: `M0 1V19` }), draw("path", { class: "quota", d: `M${(width / 2).toFixed(1)} 0V20` }));
  svg.setAttribute("viewBox", `0 0 ${width} 20`);
  svg.lastChild.replaceChildren(...drawn);
  put(svg.firstChild, `${row.group} (${row.kind}, ${row.dimension}): ${show(row.wanted, isBytes(row))}/s wanted, ${show(row.admitted, isBytes(row))}/s admitted of ${show(row.quota, isBytes(row))}/s`);
};
let typing = 0;
let isSearching = false;
const search = async () => {
  const words = at("search").value;
  const first = words.trim().split(/\s+/)[0];
  if (!first || newest.groups.total <= newest.groups.rows.length) return void (found = null);
  isSearching = true;
  const answer = await ask(`v1/live/groups?limit=50&prefix=${encodeURIComponent(first)}`).catch(() => null);
  isSearching = false;
  if (at("search").value !== words) return;
  found = answer;
  renderGroups();
};
at("search").addEventListener("input", () => {
  found = null;
  renderGroups();
  clearTimeout(typing);
  typing = setTimeout(search, 250);
});

const renderBeside = ({ backlogs, leases, log }) => {
  const items = [
    ["backlogs", `${many(backlogs.topics, "topic")}, ${count(backlogs.blocked)} blocked, ${count(backlogs.evicting)} to be skipped`, backlogs.blocked > 0],
    ["leases", count(leases), false],
    ["usage log", log ? `${log.entries === 1 ? "1 entry" : `${count(log.entries)} entries`} since the start${log.lost ? `, ${count(log.lost)} lost` : ""}` : "off", Boolean(log?.lost)],
  ];
  if (log?.tier) {
    const { records, bytes, segments, oldest_s: oldest } = log.tier;
    items.push(["tier", segments ? `${many(segments, "segment")} behind: ${count(records)} entries, ${show(bytes, true)}, the oldest ${span(oldest)}` : "up to date", false]);
  }
  if (log) items.push(["readers of the log", log.readers.length ? count(log.readers.length) : "none", false]);
  keyed(at("beside"), items.flatMap(([name, text, isPoor]) => [["dt", name, name], ["dd", name, text, isPoor]]), ([tag, name]) => `${tag} ${name}`,
    ([tag]) => make(tag), (node, [, , text, isPoor]) => {
      put(node, text);
      node.className = isPoor ? "poor" : "";
    });
  const part = (id, shown) => {
    const text = JSON.stringify(shown.rows);
    if (at(id).dataset.shown === text) return;
    at(id).dataset.shown = text;
    at(id).replaceChildren(...(shown.rows.length ? [make("h3", {}, shown.title), table(shown.title, shown.heads, shown.words, shown.rows)] : []));
  };
  part("blocked", { title: "Blocked topics", heads: ["topic", "over its quota of", "backlog"], words: 2,
    rows: backlogs.some_blocked.map((one) => [one.topic, one.quota_type, show(one.size_bytes, true)]) });
  part("readers", { title: "Readers of the usage log", heads: ["reader", "entries behind", "last acknowledged", "holds back retention"], words: 1,
    rows: (log?.readers ?? []).map((one) => [one.name, count(one.behind), `${span(one.idle_s)} ago`, one.holds ? "yes" : "no"]) });
};

// Events.

const loadEvents = async (last) => {
  seenEvent = last;
  // What failed is asked for again with the next snapshot.
  events = await ask("v1/live/events").catch(() => ((seenEvent = -1), events));
  renderEvents();
};
const renderEvents = () => {
  const which = at("events-which").value;
  const all = [...events].reverse();
  const shown = which === "bad" ? all.filter((one) => !["info", "debug"].includes(one.level)) : all.slice(0, Number(which));
  at("events-none").hidden = shown.length > 0;
  // A daemon that was started again counts from 1 again.
  keyed(at("events-list"), shown, (one) => `${one.number} ${one.unix_ms}`, (one) => {
    const what = make("div", { class: "what" }, make("b", {}, one.event), ` ${one.details} `, make("code", {}, one.code));
    const more = [one.meaning, one.do && `${one.do} `].filter(Boolean).join(" ").replaceAll("`", "");
    if (one.level !== "info" && more) what.append(make("div", { class: "more" }, more));
    if (one.runbook) what.append(" ", make("a", { href: `#runbook=${encodeURIComponent(one.runbook)}` }, `Runbook ${one.runbook}`));
    const time = make("time", { datetime: new Date(one.unix_ms).toISOString() }, clock(one.unix_ms));
    return make("li", { class: one.level }, time, make("span", { class: "level" }, one.level), what);
  }, () => {});
};
at("events-which").addEventListener("change", renderEvents);

// One group.

let openGroup = null;
const loadGroup = async (name) => {
  const group = await ask(`v1/live/groups/${encodeURIComponent(name)}`).catch((error) => ({ error: error.message }));
  if (openGroup !== name) return;
  if (group.error) return at("group-rows").replaceChildren(make("p", {}, group.error));
  if (!group.rows.length) return at("group-rows").replaceChildren(make("p", {}, group.blocked ? "It is blocked: nothing passes." : "It has no quota: nothing is limited."));
  keyed(at("group-rows"), group.rows, (row) => `${name} ${row.kind} ${row.dimension}`, buildGroup, (node, row) => {
    const history = group.history.find((one) => one.kind === row.kind && one.dimension === row.dimension);
    updateGroup(node, row, history);
  });
};
const buildGroup = (row) => {
  const details = make("details", {}, make("summary", {}, "The last minutes as a table"), make("div"));
  return make("article", {}, make("h3", {}, `${row.kind}, ${row.dimension}`), make("p"), bar(),
    make("figure", {}, draw("svg", { height: "170", role: "img" }), make("figcaption")), make("div"), details);
};
const updateGroup = (node, row, history) => {
  const [, words, svg, figure, brokers, details] = node.children;
  const lowest = row.lowest === null ? "nobody wants anything" : `the lowest ratio is ${row.lowest.toFixed(2)}, of ${row.lowest_broker}`;
  put(words, `${show(row.wanted, isBytes(row))}/s wanted, ${show(row.admitted, isBytes(row))}/s admitted of ${show(row.quota, isBytes(row))}/s; ${lowest}.`);
  updateBar(svg, row);
  chart(figure, row, history);
  const ratio = (part) => (part.ratio === null ? "-" : part.ratio.toFixed(2));
  const lines = row.brokers.map((part) => [part.broker, ...["wanted", "admitted", "share"].map((of) => show(part[of], isBytes(row))), ratio(part)]);
  const sum = (of) => show(row.brokers.reduce((total, part) => total + part[of], 0), isBytes(row));
  const isHeld = brokers.matches(":focus-within");
  if (!isHeld) brokers.replaceChildren(table(`Brokers of ${row.group}, ${row.kind}, ${row.dimension}`, ["broker", "wanted", "admitted", "share", "ratio"], 1, lines, ["all", sum("wanted"), sum("admitted"), sum("share"), ""]));
  details.hidden = !history;
  if (history && details.open && !details.lastChild.matches(":focus-within")) {
    const step = Math.ceil(history.unix_ms.length / CHART_ROWS);
    const rows = history.unix_ms.map((ms, index) => [clock(ms), ...["wanted", "admitted", "quota"].map((of) => show(history[of][index], isBytes(row))), history.lowest[index]?.toFixed(2) ?? "-"]);
    details.lastChild.replaceChildren(table(`The last minutes of ${row.group}, ${row.kind}, ${row.dimension}`, ["time", "wanted", "admitted", "quota", "lowest ratio"], 1, rows.reverse().filter((_, index) => index % step === 0)));
  }
};
const chart = (figure, row, history) => {
  const [svg, caption] = figure.children;
  svg.toggleAttribute("hidden", !history);
  if (!history) return put(caption, "It is not among the groups under the most pressure and was not lately, so it has no history.");
  put(caption, "The last ten minutes: wanted (line), admitted (area), quota (dashed).");
  const [left, top, bottom, height] = [54, 8, 22, 170];
  const width = Math.max(240, figure.clientWidth);
  const end = history.unix_ms.at(-1);
  const begin = end - Math.min(CHART_MS, Math.max(60_000, end - history.unix_ms[0]));
  const most = 1.08 * Math.max(1e-3, ...history.wanted, ...history.admitted, ...history.quota);
  const x = (ms) => left + ((ms - begin) / (end - begin || 1)) * (width - left - 4);
  const y = (rate) => top + (height - top - bottom) * (1 - rate / most);
  const line = (values) => {
    let path = "";
    values.forEach((value, index) => {
      if (value === null) return;
      const [from, to] = [x(history.unix_ms[index]), x(history.unix_ms[Math.min(index + 1, values.length - 1)])];
      path += `${index && values[index - 1] !== null ? "V" : `M${from.toFixed(1)} `}${y(value).toFixed(1)}H${to.toFixed(1)}`;
    });
    return path;
  };
  const area = history.admitted.map((value, index) => {
    if (value === null) return "";
    const [from, to] = [x(history.unix_ms[index]), x(history.unix_ms[Math.min(index + 1, history.admitted.length - 1)])];
    return `M${from.toFixed(1)} ${y(0).toFixed(1)}V${y(value).toFixed(1)}H${to.toFixed(1)}V${y(0).toFixed(1)}Z`;
  }).join("");
  const step = [1, 2, 5, 10].map((times) => times * 10 ** Math.floor(Math.log10(most / 4))).find((one) => one * 4 >= most) ?? most;
  const grid = [];
  for (let rate = 0; rate <= most; rate += step) {
    grid.push(draw("path", { class: "gridline", d: `M${left} ${y(rate).toFixed(1)}H${width}` }),
      draw("text", { x: left - 6, y: y(rate) + 4, "text-anchor": "end" }, document.createTextNode(show(rate, isBytes(row)))));
  }
  const label = (ms, anchor) => draw("text", { x: x(ms), y: height - 5, "text-anchor": anchor }, document.createTextNode(clock(ms)));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", `Wanted and admitted of ${row.group} from ${clock(begin)} to ${clock(end)}; the table below has the figures`);
  svg.replaceChildren(...grid, draw("path", { class: "admitted", d: area }), draw("path", { class: "limit", d: line(history.quota) }), draw("path", { class: "wanted", d: line(history.wanted) }),
    label(begin, "start"), label(end, "end"));
};

// Why a name is limited, in the words of `rgd why`.

const explain = async (asked) => {
  const name = asked.get("why").trim();
  [at("why-name").value, at("why-subscription").value] = [name, asked.get("subscription") ?? ""];
  at("why-kind").value = asked.get("kind") ?? "publish";
  const [tenant, namespace, ...topic] = name.replace(/^[a-z-]+:\/\//, "").split("/");
  const query = new URLSearchParams({ tenant, namespace: namespace ?? "", kind: at("why-kind").value });
  if (topic.length) query.set("topic", name.includes("://") ? name : topic.join("/"));
  if (at("why-subscription").value) query.set("subscription", at("why-subscription").value);
  const answer = await ask(`v1/explain?${query}`).catch((error) => ({ words: { verdict: error.message, details: [], rows: [], remarks: [] } }));
  const { verdict, details, columns, rows, remarks } = answer.words;
  at("why-answer").hidden = false;
  put(at("why-verdict"), verdict);
  const list = (id, lines) => at(id).replaceChildren(...lines.map((line) => make("li", {}, line)));
  list("why-details", details);
  list("why-remarks", remarks);
  at("why-table").replaceChildren(...(rows.length ? [table("Limits that apply", columns, 3, rows)] : []));
  at("why-link").href = location.hash;
};
at("ask-why").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const asked = new URLSearchParams({ why: at("why-name").value.trim(), kind: at("why-kind").value });
  if (at("why-subscription").value) asked.set("subscription", at("why-subscription").value.trim());
  if (location.hash === `#${asked}`) explain(asked);
  else location.hash = String(asked);
});

// Runbooks come from the daemon too: at night there may be nothing else.

const openRunbook = async (name) => {
  const text = await fetch("runbooks.md").then((response) => (response.ok ? response.text() : "")).catch(() => "");
  const lacking = text ? "This daemon has no such runbook." : "This daemon does not answer. Its runbooks are in docs/runbooks.md, too.";
  const section = text.split(/^## /m).find((one) => one.split("\n")[0].trim() === name) ?? `${name}\n\n${lacking}`;
  put(at("runbook-title"), name);
  const parts = section.slice(section.indexOf("\n") + 1).split(/(^```[\s\S]*?^```$)/m);
  at("runbook-text").replaceChildren(...parts.flatMap((part) =>
    part.startsWith("```") ? [make("pre", {}, part.replace(/^```.*\n|\n```$/g, ""))] : part.trim().split(/\n\n+/).filter(Boolean).map(prose)));
};
const prose = (block) => {
  const inline = (line) => line.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map((piece) => {
    if (piece.startsWith("`")) return make("code", {}, piece.slice(1, -1));
    if (piece.startsWith("**")) return make("b", {}, piece.slice(2, -2));
    const link = piece.match(/^\[([^\]]+)\]\(([^)]+)\)$/);
    if (!link) return piece;
    return link[2].startsWith("#rgd") ? make("a", { href: `#runbook=${link[1]}` }, link[1]) : link[1];
  });
  const lines = block.split("\n");
  if (/^(\d+\.|[-*]) /.test(lines[0])) {
    const items = block.split(/\n(?=\d+\. |[-*] )/).map((item) => item.replace(/^(\d+\.|[-*]) /, "").replaceAll("\n", " "));
    return make(/^\d/.test(lines[0]) ? "ol" : "ul", {}, ...items.map((item) => make("li", {}, ...inline(item))));
  }
  return make("p", {}, ...inline(lines.join(" ")));
};

// Addresses: what is open stands behind the `#`, so that it can be linked to.

const route = () => {
  const asked = new URLSearchParams(location.hash.slice(1));
  const [group, runbook] = [asked.get("group"), asked.get("runbook")];
  if (openGroup !== group) at("group-rows").replaceChildren();
  openGroup = group;
  at("group").hidden = !group;
  at("runbook").hidden = !runbook;
  if (group) {
    put(at("group-title"), group);
    loadGroup(group);
    at("group-title").focus();
  }
  if (runbook) openRunbook(runbook).then(() => at("runbook-title").focus());
  if (asked.get("why")) explain(asked).then(() => at("why").scrollIntoView());
};
let isRouted = false;
addEventListener("hashchange", route);
const first = new MutationObserver(() => {
  // What the address asks for waits for the first snapshot, because it needs the token.
  if (at("live").hidden || isRouted) return;
  isRouted = true;
  route();
});
first.observe(at("live"), { attributes: true });
watch();
