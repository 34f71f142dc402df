// The overview: constraints, graph, latency, load, decisions, events, executors. Each view is built once and then
// told of every new interval; forms are built once, so that nobody's typing is lost.

import { Chart } from "./charts.js";
import { bytes, clock, count, h, list, megabytes, ms, NOTHING, perSecond, plain, section, share, table, taskLink } from "./dom.js";
import { graph } from "./graph.js";
import { boundForm } from "./steer.js";

export const COLOURS = ["blue", "orange", "green", "purple", "sky", "red", "text"];
export const STYLES = ["solid", "dashed", "dotted", "mixed"];
const MIB = 2 ** 20;
const KINDS = ["batching", "transport", "queue", "service"];
export const look = (number) => ({ colour: COLOURS[number % 7], dash: STYLES[Math.floor(number / 7) % 4] });

export function constraints(page) {
  const names = page.columns.names("constraint");
  const place = h("div", { id: "kept" });
  const charts = names.map((name) => new Chart({
    title: name, unit: "ms", show: ms, lines: [
      { label: "mean", key: ["constraint", name, "mean"], colour: "blue" },
      { label: "95th percentile", key: ["constraint", name, "p95"], colour: "orange", dash: "dashed" },
      { label: "99th percentile", key: ["constraint", name, "p99"], colour: "purple", dash: "mixed" },
      { label: "bound", key: ["constraint", name, "bound"], colour: "text", dash: "dotted" },
    ],
  }));
  const forms = page.maySteer ? h("div", {}, (page.now?.constraints || []).map((one) => boundForm(one.name, one.bound_ms))) : null;
  const nothing = names.length ? null : h("p", {}, "This flow has no constraints.");
  return {
    element: section("constraints", "Constraints", "Each against its bound, at the chosen time; held is judged over the constraint's window.",
      nothing, place, h("div", { class: "charts" }, charts.map((chart) => chart.element)), forms),
    update({ columns, number, snapshot, choose }) {
      const rows = names.map((name) => {
        const spec = (snapshot?.constraints || []).find((one) => one.name === name) || {};
        const at = (figure) => columns.at(number, "constraint", name, figure);
        const verdicts = columns.column("constraint", name, "held").slice(0, number - columns.first + 1).filter((one) => one !== null);
        const held = at("held");
        const verdict = held === null ? NOTHING : h("span", { class: held ? "held" : "broken" }, held ? "held" : "broken");
        const kept = verdicts.length ? verdicts.filter(Boolean).length / verdicts.length : null;
        return [name, `${spec.statistic || "mean"} ≤ ${ms(at("bound"))}`, ms(at("mean")), ms(at("p95")), ms(at("p99")), verdict, share(kept)];
      });
      if (names.length) place.replaceChildren(table([["constraint", "name"], ["bound", "number"], ["mean", "number"], ["p95", "number"], ["p99", "number"], ["verdict"], ["intervals held", "number"]], rows));
      charts.forEach((chart) => chart.update(columns, number, choose));
    },
  };
}

export function picture(page) {
  const place = h("div");
  return {
    element: section("graph", "Graph", "Tasks coloured by how busy their average replica is; numbers on streams are their mean latency. Frames are chains: one process.", place),
    update({ snapshot }) {
      if (!snapshot) return;
      const focused = document.activeElement?.getAttribute?.("data-task");
      const scrolled = place.querySelector(".graph")?.scrollLeft || 0;
      place.replaceChildren(graph(page.about.shape, snapshot));
      place.querySelector(".graph").scrollLeft = scrolled;
      if (focused) [...place.querySelectorAll("[data-task]")].find((one) => one.getAttribute("data-task") === focused)?.focus();
    },
  };
}

export function latency(page) {
  const columns = page.columns;
  const charts = columns.names("part").flatMap((name) => {
    const tasks = columns.inside("part", name);
    const byKind = new Chart({
      title: `${name}, by what it is spent on`, unit: "ms", show: ms, stacked: true,
      lines: KINDS.map((kind) => ({ label: kind, colour: "text", fill: `fill-${kind}`, values: (found) => found.sum(tasks.map((task) => ["part", name, task, kind])) })),
    });
    const byTask = new Chart({
      title: `${name}, to each task and in it`, unit: "ms", show: ms,
      lines: tasks.map((task, number) => ({ label: task, ...look(number), values: (found) => found.sum(KINDS.map((kind) => ["part", name, task, kind])) })),
    });
    return [byKind, byTask];
  });
  const place = h("div", { id: "parts" });
  return {
    element: section("latency", "Where the latency goes", "Means at the chosen time: of streams batching, transport and queue, of tasks service.",
      h("div", { class: "charts" }, charts.map((chart) => chart.element)), place),
    update({ columns: found, number, choose }) {
      charts.forEach((chart) => chart.update(found, number, choose));
      const stream = (name, figure) => ms(found.at(number, "stream", name, figure));
      const rows = [
        ...found.names("stream").map((name) => [name, ...["batching", "transport", "queue"].map((figure) => stream(name, figure)), NOTHING, stream(name, "latency"), stream(name, "lifetime")]),
        ...found.names("task").map((name) => [taskLink(name), NOTHING, NOTHING, ms(found.at(number, "task", name, "queue")), ms(found.at(number, "task", name, "service")), NOTHING, NOTHING]),
      ];
      place.replaceChildren(table([["stream or task", "name"], ...[...KINDS, "latency", "batch lifetime"].map((one) => [one, "number"])], rows));
    },
  };
}

export function load(page) {
  const tasks = page.about.shape.tasks;
  const of = (kind) => tasks.filter((task) => task.kind === kind).map((task) => task.name);
  const rate = new Chart({ title: "Rate", unit: "items/s", show: perSecond, lines: [
    ...of("source").map((name, number) => ({ label: `sent: ${name}`, key: ["task", name, "rate"], colour: "blue", dash: STYLES[number % 4] })),
    ...of("sink").map((name, number) => ({ label: `received: ${name}`, key: ["task", name, "rate"], colour: "orange", dash: STYLES[(number + 1) % 4] })),
  ] });
  const lag = new Chart({ title: "Lag of the sources", unit: "ms", show: ms, lines: of("source").map((name, number) => ({ label: name, key: ["task", name, "lag_ms"], ...look(number) })) });
  const waiting = new Chart({ title: "Items that wait", unit: "items", show: count, lines: [
    ...of("source").map((name, number) => ({ label: `not read: ${name}`, key: ["task", name, "lag_items"], ...look(number) })),
    ...[...of("task"), ...of("sink")].map((name, number) => ({ label: `before ${name}`, key: ["task", name, "backlog"], ...look(number + 1) })),
  ] });
  const replicas = of("task").map((name) => replicasChart(name));
  const charts = [rate, lag, waiting, ...replicas];
  return {
    element: section("load", "Rate, lag and replicas", "Replicas that are active, planned by the last decision, needed for the load at 75 % busy, and in the pool.",
      h("div", { class: "charts" }, charts.map((chart) => chart.element))),
    update: ({ columns, number, choose }) => charts.forEach((chart) => chart.update(columns, number, choose)),
  };
}

export const replicasChart = (name) => new Chart({ title: `Replicas of ${name}`, unit: "", show: plain, lines: [
  { label: "pool", key: ["task", name, "pool"], colour: "soft", dash: "dashed" },
  { label: "active", key: ["task", name, "replicas"], colour: "blue" },
  { label: "planned", key: ["task", name, "planned"], colour: "orange", dash: "mixed" },
  { label: "needed", key: ["task", name, "needed"], colour: "green", dash: "dotted" },
] });

export function decisionTable(found) {
  const rows = found.map((one) => {
    const words = one.changes.map((change) => change.text);
    const why = [
      ...one.reasons.map((reason) => `${reason.rule}: ${reason.why}`),
      ...one.refused.map((refusal) => `held back by ${refusal.guard}: ${refusal.why}`),
    ];
    const effect = [
      ...(one.after_ms === null ? [] : [`in effect after ${one.after_ms.toFixed(0)} ms`]),
      ...(one.gap_ms === null ? [] : [`sources stood still for ${one.gap_ms.toFixed(0)} ms`]),
      ...(one.problem === null ? [] : [`not carried out: ${one.problem}`]),
      ...(one.feasible ? [] : ["cannot be enough"]),
    ];
    return [clock(one.at_s), one.by ? `by hand (${one.by})` : one.policy, list(words.length ? words : ["nothing changed"]), list(why.length ? why : [NOTHING]), list(effect.length ? effect : [NOTHING])];
  });
  return found.length ? table([["time", "kind"], ["who", "name"], ["what", "words"], ["why", "words"], ["effect", "words"]], rows, { class: "decisions" }) : h("p", {}, "None up to this time.");
}

export function decisions(page) {
  const place = h("div", { id: "log" });
  const only = h("input", { type: "checkbox", id: "only-changes", onchange: () => { page.onlyChanges = only.checked; page.refresh(); } });
  only.checked = page.onlyChanges;
  return {
    element: section("decisions", "Decisions", "Up to the chosen time, newest first, with reasons and what guards held back.",
      h("label", {}, only, " only those that changed or held back something"), place),
    update: () => place.replaceChildren(decisionTable(page.decisions)),
  };
}

export function events(page) {
  const place = h("div");
  const about = page.about.is_live
    ? "Commits, failures of tasks, and restarts of the flow since the dashboard was opened by the driver."
    : "Starts of the driver, boundaries at which the sources stood still, and, if the recording has them, commits, failures and restarts. A failure was noted at the end of its interval.";
  return {
    element: section("events", "Commits, failures and restarts", about, place),
    update({ atS }) {
      const found = page.events.filter((event) => event.at_s <= atS).reverse().slice(0, 100);
      const rows = found.map((event) => [clock(event.at_s), event.kind, event.text, event.detail ?? NOTHING]);
      place.replaceChildren(found.length ? table([["time", "kind"], ["kind", "kind"], ["what", "words"], ["detail", "words"]], rows) : h("p", {}, "None up to this time."));
    },
  };
}

// Where commits are epoch marks: the last one, what came in the intervals so far, and the state that is in it.
export function commits(page) {
  const charts = [
    new Chart({ title: "Commits", unit: "ms", show: ms, lines: [
      { label: "time that the last one took", key: ["commits", "", "took"], colour: "blue" },
      { label: "time since the last one", key: ["commits", "", "age"], colour: "orange", dash: "dashed" },
    ] }),
    new Chart({ title: "Epochs void, and rollbacks", unit: "", show: plain, lines: [
      { label: "void", key: ["commits", "", "void"], colour: "purple" },
      { label: "rollbacks", key: ["commits", "", "rollbacks"], colour: "red", dash: "dashed" },
    ] }),
  ];
  const place = h("div");
  const drawn = h("div", { class: "charts" }, charts.map((chart) => chart.element));
  const about = "Commits by epoch marks: the last one at the chosen time, all that are shown up to it, and the state of tasks in it. A void epoch was left out; a rollback is a start at the last commit.";
  const element = section("commits", "Commits and state", about, place, drawn);
  let sizes = null;
  let keepers = "";
  return {
    element,
    update({ columns, number, snapshot, choose }) {
      element.hidden = !columns.column("commits", "", "committed").some((value) => value !== null);
      if (element.hidden) return;
      const at = (figure) => columns.at(number, "commits", "", figure);
      const soFar = (figure) => columns.column("commits", "", figure).slice(0, number - columns.first + 1).reduce((sum, value) => sum + (value || 0), 0);
      const last = table(["last epoch", "age", "took", "commits", "epochs void", "rollbacks"].map((one) => [one, "number"]),
        [[count(at("epoch")), ms(at("age")), ms(at("took")), ...["committed", "void", "rollbacks"].map((figure) => count(soFar(figure)))]], { id: "last-commit" });
      const rows = Object.entries(snapshot?.tasks || {}).filter(([, task]) => task.state_bytes !== undefined || task.key_groups)
        .map(([name, task]) => [taskLink(name), bytes(task.state_bytes), heaviest(task).map(([group, part]) => `${group}: ${share(part)}`).join(", ") || NOTHING]);
      place.replaceChildren(last, rows.length ? table([["task", "name"], ["state", "number"], ["heaviest groups of keys, of its items", "words"]], rows, { id: "state" }) : "");
      const names = columns.names("task").filter((name) => columns.column("task", name, "state_bytes").some((value) => value !== null));
      if (names.join() !== keepers) {  // a task is known to keep something once it is in a commit
        keepers = names.join();
        sizes?.destroy();
        sizes?.element.remove();
        const inMiB = (name) => (found) => found.column("task", name, "state_bytes").map((value) => (value === null ? null : value / MIB));
        sizes = new Chart({ title: "State in the last commit", unit: "MiB", show: (value) => bytes(value === null ? null : value * MIB), lines: names.map((name, line) => ({ label: name, values: inMiB(name), ...look(line) })) });
        drawn.append(sizes.element);
      }
      for (const chart of sizes ? [...charts, sizes] : charts) chart.update(columns, number, choose);
    },
  };
}

// Groups with the most items of the interval, and their share of all.
function heaviest(task, most = 3) {
  const known = (task.key_groups || []).filter((one) => one.processed);
  const all = Math.max(known.reduce((sum, one) => sum + one.processed, 0), task.processed_total || 0);
  return [...known].sort((a, b) => b.processed - a.processed).slice(0, most).map((one) => [one.group, one.processed / all]);
}

export function executors() {
  const place = h("div");
  const about = "Which replicas run where, and what each executor takes. Cores used are those that its workers and Spark's Java keep busy, memory is that of all its processes, slots are Spark's tasks. The line above the table has the cores of everything: driver, Spark and workers.";
  return {
    element: section("executors", "Executors", about, place),
    update({ columns, number, snapshot }) {
      const at = new Map();
      for (const [name, task] of Object.entries(snapshot?.tasks || {})) {
        for (const worker of task.worker || []) {
          if (!at.has(worker)) at.set(worker, new Map());
          at.get(worker).set(name, (at.get(worker).get(name) || 0) + 1);
        }
      }
      const known = snapshot?.executors || {};
      for (const name of Object.keys(known)) if (!at.has(name)) at.set(name, new Map());
      // What no executor tells has no column.
      const told = [
        ["cores used by workers", (figures) => plain(figures.cores_used)],
        ["cores used by Java", (figures) => plain(figures.java_cores_used)],
        ["cores of its machine", (figures) => plain(figures.cores)],
        ["slots used", (figures) => plain(figures.slots_used)],
        ["slots", (figures) => plain(figures.slots)],
        ["memory", (figures) => megabytes(figures.memory_bytes)],
      ].filter(([, show]) => Object.values(known).some((figures) => show(figures) !== NOTHING));
      const inOrder = [...at].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
      const rows = inOrder.map(([name, tasks]) => [
        name,
        [...tasks].map(([task, replicas]) => `${task} ${replicas}`).join(", ") || NOTHING,
        [...tasks.values()].reduce((sum, replicas) => sum + replicas, 0),
        ...told.map(([, show]) => show(known[name] || {})),
      ]);
      const cores = `${plain(columns.at(number, "flow", "", "cores_used"))} of ${plain(columns.at(number, "flow", "", "cores_leased"))} cores are used`;
      place.replaceChildren(h("p", { id: "cores" }, cores), rows.length
        ? table([["executor", "name"], ["replicas", "words"], ["all replicas", "number"], ...told.map(([heading]) => [heading, "number"])], rows)
        : h("p", {}, "It is not known which replicas run where."));
    },
  };
}
