// The flow as a picture: tasks coloured by load, with replicas, pool and queue; chains framed.

import { count, h, ms, s, share } from "./dom.js";

const WIDE = 168, HIGH = 74, GAP_X = 92, GAP_Y = 26, EDGE = 24;
const LOADS = [["none", "not measured"], ["idle", "below 50 % busy"], ["busy", "50 to 75 %"], ["hot", "75 to 95 %"], ["full", "95 % or more"]];

const load = (value) => {
  if (value === null || value === undefined) return "none";
  if (value < 0.5) return "idle";
  if (value < 0.75) return "busy";
  return value < 0.95 ? "hot" : "full";
};

const short = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

export function graph(shape, snapshot) {
  const place = new Map(shape.tasks.map((task) => [task.name, {
    x: EDGE + task.column * (WIDE + GAP_X), y: EDGE + task.row * (HIGH + GAP_Y),
  }]));
  const all = [...place.values()];
  const width = Math.max(...all.map((one) => one.x)) + WIDE + EDGE;
  const height = Math.max(...all.map((one) => one.y)) + HIGH + EDGE;
  const joined = (snapshot.chains || []).filter((chain) => chain.length > 1);
  const picture = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "The graph of the flow" },
    shape.streams.map((stream) => drawStream(stream, place, snapshot)),
    joined.map((chain) => frame(chain, place)),
    shape.tasks.map((task) => drawTask(task, place.get(task.name), snapshot.tasks[task.name])));
  return h("div", {}, h("div", { class: "graph" }, picture), key(joined));
}

function drawTask(task, at, seen) {
  const load_ = load(seen.utilization);
  const pool = seen.pool ?? null;
  const replicas = pool === null ? `${seen.parallelism} active` : `${seen.parallelism} active / ${pool} pool`;
  const waits = seen.backlog_total ?? null;
  const lines = [replicas, `${share(seen.utilization)} busy`, waits === null ? "" : `${count(waits)} waiting`];
  const spare = pool !== null && pool > seen.parallelism
    ? s("rect", { class: "pool", x: at.x + 5, y: at.y - 5, width: WIDE, height: HIGH, rx: 6 }) : null;
  const box = s("g", { class: `node load-${load_}` },
    s("title", {}, `${task.name}, ${task.kind}: ${lines.filter(Boolean).join(", ")}`), spare,
    s("rect", { class: "box", x: at.x, y: at.y, width: WIDE, height: HIGH, rx: 6 }),
    s("text", { class: "big", x: at.x + 10, y: at.y + 19 }, short(task.name, 22)),
    lines.map((line, number) => s("text", { x: at.x + 10, y: at.y + 36 + 15 * number }, line)));
  return s("a", { href: `#/task/${encodeURIComponent(task.name)}`, "data-task": task.name }, box);
}

function drawStream(stream, place, snapshot) {
  const from = place.get(stream.sender), to = place.get(stream.receiver);
  const x1 = from.x + WIDE, y1 = from.y + HIGH / 2, x2 = to.x, y2 = to.y + HIGH / 2, bend = (x2 - x1) / 2;
  const seen = (snapshot.streams || []).find((one) => `${one.from}->${one.to}` === stream.name) || {};
  return s("g", { "data-stream": stream.name },
    s("title", {}, `${stream.name}, ${stream.wiring}: ${ms(seen.latency_ms)}, lifetime ${ms(seen.batch_lifetime_ms)}`),
    s("path", { class: stream.wiring, d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }),
    s("path", { d: `M${x2 - 7} ${y2 - 4} L${x2} ${y2} L${x2 - 7} ${y2 + 4}` }),
    s("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 6, "text-anchor": "middle" }, ms(seen.latency_ms)));
}

function frame(chain, place) {
  const spots = chain.map((name) => place.get(name)).filter(Boolean);
  const left = Math.min(...spots.map((one) => one.x)) - 9, top = Math.min(...spots.map((one) => one.y)) - 9;
  const right = Math.max(...spots.map((one) => one.x)) + WIDE + 9, bottom = Math.max(...spots.map((one) => one.y)) + HIGH + 9;
  return s("rect", { class: "chain", x: left, y: top, width: right - left, height: bottom - top, rx: 10 },
    s("title", {}, `one process: ${chain.join(" + ")}`));
}

function key(joined) {
  const chains = joined.length ? `chains: ${joined.map((chain) => chain.join(" + ")).join(", ")}` : "no chains";
  return h("div", {}, h("ul", { class: "key-to-loads" }, LOADS.map(([name, words]) => h("li", { class: `load-${name}` },
    s("svg", { width: 14, height: 12, class: `load-${name}`, "aria-hidden": "true" }, s("rect", { class: "box", width: 14, height: 12 })), " ", words))),
  h("p", { id: "chains" }, chains));
}
