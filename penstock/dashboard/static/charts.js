// Charts over time by uPlot: steps, as every figure is that of an interval. The legend is a table of its own, with
// the figures of the interval that the slider is at.

import { h, s, NOTHING } from "./dom.js";

/* global uPlot */
const DASHES = { solid: [], dashed: [6, 4], dotted: [2, 3], mixed: [8, 3, 2, 3] };
const HEIGHT = 190;
const NARROW = 4;
const living = new Set();

export function forgetCharts() {
  for (const chart of living) chart.destroy();
  living.clear();
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export class Chart {
  // lines: {label, key, colour, dash, fill}; stacked lines are drawn on top of each other.
  constructor({ title, unit, lines, show, stacked = false }) {
    Object.assign(this, { title, unit, lines, show, stacked });
    this.plot = null;
    this.chosen = null;
    this.host = h("div", { class: "plot" });
    this.values = lines.map(() => h("td", { class: "number" }, NOTHING));
    const legend = h("table", { class: "legend", "aria-label": `${title}, at the chosen time` },
      h("tbody", {}, lines.map((line, number) => h("tr", {}, h("td", {}, swatch(line), " ", line.label), this.values[number]))));
    this.element = h("div", { class: "chart" }, h("h3", {}, unit ? `${title} [${unit}]` : title), this.host, legend);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.host);
    living.add(this);
  }

  update(columns, number, choose) {
    this.choose = choose;
    this.chosen = number;
    const isNew = this.columns !== columns || this.end !== columns.end;
    Object.assign(this, { columns, end: columns.end });
    if (isNew) this.raw = this.lines.map((line) => line.values ? line.values(columns) : columns.column(...line.key));
    const at = number - columns.first;
    this.values.forEach((cell, line) => { cell.textContent = this.show(this.raw[line][at] ?? null); });
    if (!isNew) { this.plot.redraw(false); return; }  // the mark alone has moved
    const data = [columns.times, ...(this.stacked ? stack(this.raw) : this.raw)];
    if (this.plot === null) this.plot = this.draw(data);
    else this.plot.setData(data);
  }

  draw(data) {
    const text = colour("soft");
    const grid = { stroke: colour("line"), width: 0.5 };
    const axis = { stroke: text, grid, ticks: grid, font: "11px system-ui, sans-serif" };
    const dated = data[0].length && data[0][0] > 1e8;
    // Where steps are much narrower than pixels, only the lowest and highest value of each pixel is drawn.
    const paths = data[0].length > NARROW * this.width() ? uPlot.paths.linear() : uPlot.paths.stepped({ align: -1 });
    const series = this.lines.map((line) => ({
      label: line.label,
      stroke: colour(line.colour) || line.colour,
      fill: line.fill ? colour(line.fill) : undefined,
      width: line.fill ? 0.5 : 1.8,
      dash: DASHES[line.dash || "solid"],
      points: { show: false },
      paths,
      spanGaps: false,
    }));
    const bands = this.stacked ? this.lines.slice(1).map((_, n) => ({ series: [n + 2, n + 1] })) : [];
    return new uPlot({
      width: this.width(), height: HEIGHT, series: [{}, ...series], bands,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false },
      scales: { x: { time: Boolean(dated) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.08] } },
      axes: [dated ? axis : { ...axis, values: (_, splits) => splits.map((at) => `${at} s`) }, { ...axis, size: 56 }],
      hooks: {
        draw: [(plot) => this.mark(plot)],
        ready: [(plot) => plot.over.addEventListener("click", () => {
          if (plot.cursor.idx !== null && this.choose) this.choose(this.columns.first + plot.cursor.idx);
        })],
      },
    }, data, this.host);
  }

  mark(plot) {
    const at = this.columns.times[this.chosen - this.columns.first];
    if (at === undefined) return;
    const x = Math.round(plot.valToPos(at, "x", true));
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour("text");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([]);
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    ctx.restore();
  }

  width() { return Math.max(200, Math.floor(this.host.clientWidth || 600)); }

  resize() {
    if (this.plot !== null && this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: HEIGHT });
  }

  destroy() {
    this.observer.disconnect();
    if (this.plot !== null) this.plot.destroy();
    this.plot = null;
  }
}

function swatch(line) {
  const dash = DASHES[line.dash || "solid"].join(" ");
  const mark = line.fill
    ? s("rect", { width: 18, height: 10, fill: `var(--${line.fill})` })
    : s("line", { x1: 0, x2: 18, y1: 5, y2: 5, stroke: `var(--${line.colour})`, "stroke-width": 2.5, "stroke-dasharray": dash || null });
  return s("svg", { width: 18, height: 10, "aria-hidden": "true" }, mark);
}

function stack(columns) {
  const sums = new Float64Array(columns.length ? columns[0].length : 0);
  return columns.map((column) => column.map((value, row) => (value === null ? null : (sums[row] += value))));
}
