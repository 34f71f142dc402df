// The page of a task: its figures, its replicas, its streams, and what was decided about it.

import { Chart } from "./charts.js";
import { bytes, count, h, ms, perSecond, plain, section, share, table } from "./dom.js";
import { decisionTable, replicasChart } from "./views.js";
import { lifetimeForm, replicasForm } from "./steer.js";

const line = (name, figure, label, colour, dash) => ({ label, key: ["task", name, figure], colour, dash });

export function taskViews(page, name) {
  return [about(page, name), overTime(page, name), replicas(page, name), streams(page, name), decided(page, name)];
}

function about(page, name) {
  const place = h("div");
  const task = page.now?.tasks.find((one) => one.name === name);
  const forms = page.maySteer && task && task.lowest < task.highest ? replicasForm(task) : null;
  return {
    element: section("task", name, "At the chosen time.", h("p", {}, h("a", { href: "#/" }, "← all of the flow")), place, forms),
    update({ columns, number, snapshot, now }) {
      const seen = snapshot?.tasks[name];
      if (!seen) return;
      const at = (figure) => columns.at(number, "task", name, figure);
      const total = now?.tasks.find((one) => one.name === name);
      const rows = [
        ["kind", seen.kind],
        ["replicas: active / pool", `${seen.parallelism} / ${plain(seen.pool)}`],
        ["replicas: declared", `${plain(seen.min ?? 1)} to ${plain(seen.max)}`],
        ["rate", perSecond(at("rate"))],
        ["busy: average replica", share(seen.utilization)],
        ["busy: busiest replica", share(seen.utilization_max)],
        ["service time", ms(at("service"))],
        ["wait in the queue", ms(at("queue"))],
        ["items that wait", count(at("backlog"))],
        ...(seen.kind === "source" ? [["lag", `${ms(at("lag_ms"))}, ${count(at("lag_items"))} items`]] : []),
        ...(seen.state_bytes === undefined ? [] : [["state in the last commit", bytes(seen.state_bytes)]]),
        ...(total ? [
          ["items in, so far", count(total.items_in)],
          ["skipped / dead letters, so far", `${count(total.skipped)} / ${count(total.dead_lettered)}`],
          ["workers that died, so far", count(total.restarts)],
        ] : []),
      ];
      place.replaceChildren(table([["figure"], ["value", "number"]], rows, { id: "figures" }));
    },
  };
}

function overTime(page, name) {
  const isSource = page.about.shape.tasks.some((task) => task.name === name && task.kind === "source");
  const waits = isSource ? line(name, "lag_items", "not read", "orange", "dashed") : line(name, "backlog", "before it", "blue");
  const charts = [
    new Chart({ title: "Rate", unit: "items/s", show: perSecond, lines: [line(name, "rate", "rate", "blue")] }),
    new Chart({ title: "Busy share", unit: "", show: share, lines: [line(name, "utilization", "average replica", "blue")] }),
    new Chart({ title: "Latency", unit: "ms", show: ms, lines: [line(name, "service", "service", "purple"), line(name, "queue", "queue", "green", "dashed")] }),
    new Chart({ title: "Items that wait", unit: "items", show: count, lines: [waits] }),
    replicasChart(name),
  ];
  return {
    element: section("over-time", "Over time", "Every step is an interval.", h("div", { class: "charts" }, charts.map((chart) => chart.element))),
    update: ({ columns, number, choose }) => charts.forEach((chart) => chart.update(columns, number, choose)),
  };
}

function replicas(page, name) {
  const place = h("div");
  return {
    element: section("replicas", "Replicas", "What each did in the interval, and on which executor.", place),
    update({ snapshot }) {
      const seen = snapshot?.tasks[name];
      const known = seen?.instances || [];
      const rows = known.map((one, number) => [String(number), count(one.processed), count(one.emitted),
        share(one.useful_s === undefined ? null : one.useful_s / snapshot.interval_s), seen.worker?.[number] ?? "–"]);
      const groups = (seen?.key_groups || []).map((one) => [String(one.group), count(one.processed),
        share(one.useful_s === undefined ? null : one.useful_s / snapshot.interval_s)]);
      place.replaceChildren(rows.length
        ? table([["replica"], ["processed", "number"], ["emitted", "number"], ["busy", "number"], ["executor", "name"]], rows)
        : h("p", {}, "Single replicas were not measured."),
      groups.length ? table([["group of keys"], ["processed", "number"], ["busy", "number"]], groups) : "");
    },
  };
}

function streams(page, name) {
  const place = h("div");
  const own = page.about.shape.streams.filter((one) => one.sender === name || one.receiver === name);
  const forms = page.maySteer ? own.map((one) => lifetimeForm(one.name, page.now?.lifetimes_ms[one.name] ?? 0)) : [];
  const charts = own.map((one) => new Chart({
    title: `${one.name}, by what it is spent on`, unit: "ms", show: ms, stacked: true,
    lines: ["batching", "transport", "queue"].map((part) => ({ label: part, key: ["stream", one.name, part], colour: "text", fill: `fill-${part}` })),
  }));
  return {
    element: section("streams", "Streams", "Into the task and out of it: mean latency at the chosen time, and over time.",
      place, h("div", { class: "charts" }, charts.map((chart) => chart.element)), forms),
    update({ columns, number, choose }) {
      charts.forEach((chart) => chart.update(columns, number, choose));
      const rows = own.map((one) => [one.name, one.wiring, ...["latency", "batching", "transport", "queue", "lifetime"].map((figure) => ms(columns.at(number, "stream", one.name, figure)))]);
      place.replaceChildren(table([["stream", "name"], ["wiring"], ...["latency", "batching", "transport", "queue", "batch lifetime"].map((one) => [one, "number"])], rows));
    },
  };
}

function decided(page, name) {
  const place = h("div");
  const touches = (subject) => subject === name || (subject || "").split("->").some((end) => end.split(".")[0] === name);
  return {
    element: section("decided", "Decisions about it", "Of the last ones up to the chosen time.", place),
    update() {
      const found = page.decisions.filter((one) => one.changes.some((change) => touches(change.subject))
        || [...one.reasons, ...one.refused].some((reason) => reason.task === name || (reason.stream && touches(reason.stream))));
      place.replaceChildren(decisionTable(found));
    },
  };
}
