// Elements and numbers. Whatever a flow says becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

const known = (value) => value !== null && value !== undefined;
export const NOTHING = "–";
export const ms = (value) => (known(value) ? `${value.toFixed(2)} ms` : NOTHING);
export const share = (value) => (known(value) ? `${(100 * value).toFixed(1)} %` : NOTHING);
export const perSecond = (value) => (known(value) ? `${value.toFixed(1)} /s` : NOTHING);
export const count = (value) => (known(value) ? value.toLocaleString("en-US", { maximumFractionDigits: 1 }) : NOTHING);
export const megabytes = (value) => (known(value) ? `${Math.round(value / 2 ** 20).toLocaleString("en-US")} MiB` : NOTHING);
export function bytes(value) {
  if (!known(value)) return NOTHING;
  const unit = Math.min(3, Math.max(0, Math.floor(Math.log2(Math.max(1, value)) / 10)));
  return `${(value / 1024 ** unit).toFixed(unit ? 1 : 0)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}
export const plain = (value) => (known(value) ? String(Math.round(value * 100) / 100) : NOTHING);

// Recordings of the simulator count seconds from their start, all others since 1970.
const DATED = 1e8;
export const isSimulated = (atS) => known(atS) && atS < DATED;
export function clock(atS) {
  if (!known(atS)) return NOTHING;
  if (isSimulated(atS)) return `${Math.round(atS)} s`;
  return new Date(atS * 1000).toLocaleString("sv-SE", { hour12: false });
}

export function table(headings, rows, properties) {
  // On a narrow page a row becomes a block, and every cell has its heading beside it; the roles stay those of a table.
  const cell = (content, column) => {
    const [heading, kind] = headings[column];
    return h("td", { class: kind || null, role: "cell", "data-heading": heading }, h("div", {}, content instanceof Node ? content : String(content ?? NOTHING)));
  };
  return h("div", { class: "wide" }, h("table", { role: "table", ...properties },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, headings.map(([heading, kind]) => h("th", { class: kind === "number" ? kind : null, scope: "col", role: "columnheader" }, heading)))),
    h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" }, row.map(cell))))));
}

export const section = (id, title, about, ...children) =>
  h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), h("p", { class: "about" }, about), children);

export const taskLink = (name) => h("a", { href: `#/task/${encodeURIComponent(name)}` }, name);
export const list = (lines) => (lines.length === 1 ? lines[0] : h("ul", {}, lines.map((line) => h("li", {}, line))));
