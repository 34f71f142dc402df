// The page: which views there are, at which time, and what is new.

import { forgetCharts } from "./charts.js";
import * as data from "./data.js";
import { clock, h, isSimulated, taskLink } from "./dom.js";
import { policyForm } from "./steer.js";
import { taskViews } from "./task.js";
import * as overview from "./views.js";

const AGAIN_MS = 1000;
const element = (id) => document.getElementById(id);

const page = {
  about: null, columns: new data.Columns(), now: null, decisions: [], events: [], onlyChanges: true,
  views: [], number: 0, follows: true, interval: null, marks: "", isLost: false,
  get maySteer() { return this.about.may_steer; },
  refresh: () => refresh(),
};

function route() {
  const [, what, name] = location.hash.split("/");
  const task = what === "task" ? decodeURIComponent(name || "") : null;
  return page.about.shape.tasks.some((one) => one.name === task) ? task : null;
}

function build() {
  if (!page.columns.times.length) return;
  forgetCharts();
  const task = route();
  page.views = task === null
    ? [overview.constraints, overview.picture, overview.latency, overview.load, overview.decisions, overview.commits, overview.events, overview.executors].map((view) => view(page))
    : taskViews(page, task);
  element("main").replaceChildren(...page.views.map((view) => view.element));
  element("tasks").replaceChildren(h("a", { href: "#/" }, "overview"), ...page.about.shape.tasks.map((one) => taskLink(one.name)));
  update();
}

function update() {
  const { columns, number } = page;
  if (!columns.times.length) return;
  const slider = element("slider");
  slider.min = columns.first; slider.max = columns.end - 1; slider.value = number;
  const atS = columns.times[number - columns.first];
  element("time").textContent = clock(atS);
  slider.setAttribute("aria-valuetext", clock(atS));
  element("follow").setAttribute("aria-pressed", String(page.follows));
  const told = { columns, number, snapshot: page.interval?.snapshot, now: page.now, choose, atS: page.follows ? Infinity : atS };
  for (const view of page.views) view.update(told);
  document.body.dataset.shown = number;
}

function headline() {
  const { about, now } = page;
  element("flow").textContent = about.flow;
  document.title = `${about.flow} – Penstock`;
  const words = now ? `${now.state}, ${now.message}` : about.is_live ? "" : isSimulated(page.columns.times.at(-1)) ? "a recording, simulated" : "a recording";
  const lost = page.isLost ? "; not connected: it has ended, or is out of reach" : "";
  const restarts = now?.restarts ? `; started again ${now.restarts} times` : "";
  const problem = now?.problem ? `; ${now.problem}` : "";
  element("state").textContent = `${words}${restarts}${problem}${lost}`;
  element("signed").textContent = about.is_signed ? "Signed in with the token."
    : about.is_live ? "Without the token: figures only. The address with the token is printed where the flow was started."
      : "Without the token: figures only.";
}

async function refresh() {
  const asked = page.number;
  const { columns } = page;
  if (!columns.times.length) return;
  const atS = page.follows ? 1e18 : columns.times[asked - columns.first];
  const [interval, decisions] = await Promise.all([data.interval(asked), data.decisions(atS, page.onlyChanges)]);
  if (asked !== page.number && !page.follows) return;  // the slider has moved on
  page.interval = interval;
  page.decisions = decisions;
  update();
}

function choose(number) {
  page.number = Math.min(Math.max(number, page.columns.first), page.columns.end - 1);
  page.follows = page.number === page.columns.end - 1;
  update();
  later();
}

let waiting = null;
function later() {
  clearTimeout(waiting);
  waiting = setTimeout(() => refresh().catch(lost), 60);
}

function lost() {
  page.isLost = true;
  headline();
}

const heard = {
  rows(told) {
    const isFirst = !page.columns.times.length;
    page.columns.take(told);
    page.columns.forget();
    if (page.follows) page.number = page.columns.end - 1;
    page.number = Math.max(page.number, page.columns.first);
    if (isFirst) { open().catch(lost); return; }
    if (page.follows) later(); else update();
  },
  now(now) {
    const steered = page.now === null && now !== null;
    page.now = now;
    headline();
    if (now !== null && now.marks !== page.marks) {
      page.marks = now.marks;
      data.events().then((found) => { page.events = found; later(); }).catch(lost);
    }
    if (steered) { policy(); build(); }
  },
  lost() {
    lost();
    setTimeout(() => open().catch(heard.lost), AGAIN_MS);
  },
};

function policy() {
  const { about, now } = page;
  const words = h("span", {}, about.policy === null ? "no policy" : now?.mode ? `policy ${about.policy}: ${now.mode}` : `policy ${about.policy}`);
  element("policy").replaceChildren(page.maySteer && now?.mode ? policyForm(about.policy, now.mode) : words);
}

let source = null;
async function open() {
  source?.close();
  page.columns = new data.Columns();
  [page.about, page.events] = await Promise.all([data.flow(), data.events(), page.columns.load()]);
  page.isLost = false;
  if (page.follows || page.number >= page.columns.end) page.number = Math.max(0, page.columns.end - 1);
  headline();
  policy();
  build();
  if (page.about.is_live) source = data.listen(page.columns.end, heard);
  await refresh();
}

element("slider").addEventListener("input", (event) => choose(Number(event.target.value)));
element("follow").addEventListener("click", () => choose(page.columns.end - 1));
window.addEventListener("hashchange", () => { build(); later(); element("main").focus(); window.scrollTo(0, 0); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
open().catch((problem) => { lost(); element("empty").textContent = problem.message; setTimeout(() => open().catch(heard.lost), AGAIN_MS); });
