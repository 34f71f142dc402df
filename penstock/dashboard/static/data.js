// What the server tells: the flow, figures over time as columns, intervals, decisions, events.

const SEPARATOR = "\u0000";
const LONGEST = 3600;

async function asked(address, options) {
  const answer = await fetch(address, options);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.why || `answer ${answer.status}`);
  return body;
}

export const flow = () => asked("/api/flow");
export const interval = (number) => asked(`/api/interval/${number}`);
export const events = () => asked("/api/events");
export const decisions = (beforeS, changes) =>
  asked(`/api/decisions?count=60&before=${beforeS}&changes=${changes ? 1 : 0}`);
export const set = (wanted) => asked("/api/set", {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ do: "set", ...wanted }),
});

export class Columns {
  constructor() { this.first = 0; this.times = []; this.byKey = new Map(); }

  async load() { this.take(await asked("/api/columns")); }

  take(told) {
    if (told.first > this.end || told.first < this.first || !this.times.length) {
      this.first = told.first; this.times = []; this.byKey = new Map();
    }
    const skipped = this.end - told.first;
    this.times.push(...told.times.slice(skipped));
    told.keys.forEach((key, number) => {
      const name = key.join(SEPARATOR);
      if (!this.byKey.has(name)) this.byKey.set(name, []);
      this.byKey.get(name).push(...told.values[number].slice(skipped));
    });
  }

  // A live page that stays open for days forgets as the server does.
  forget() {
    const surplus = this.times.length - LONGEST;
    if (surplus < LONGEST / 10) return;
    this.first += surplus;
    this.times.splice(0, surplus);
    for (const column of this.byKey.values()) column.splice(0, surplus);
  }

  get end() { return this.first + this.times.length; }

  column(...key) { return this.byKey.get(key.join(SEPARATOR)) || this.times.map(() => null); }

  // The sum of several columns, nothing where one of them has nothing.
  sum(keys) {
    const columns = keys.map((key) => this.column(...key));
    return this.times.map((_, row) => {
      let sum = 0;
      for (const column of columns) {
        if (column[row] === null) return null;
        sum += column[row];
      }
      return sum;
    });
  }

  at(number, ...key) { return this.column(...key)[number - this.first] ?? null; }

  names(what) {
    const found = new Set();
    for (const key of this.byKey.keys()) {
      const [first, name] = key.split(SEPARATOR);
      if (first === what) found.add(name);
    }
    return [...found];
  }

  inside(what, name) {
    const found = new Set();
    for (const key of this.byKey.keys()) {
      const [first, second, third] = key.split(SEPARATOR);
      if (first === what && second === name) found.add(third);
    }
    return [...found];
  }
}

export function listen(from, heard) {
  const source = new EventSource(`/api/stream?from=${from}`);
  source.addEventListener("rows", (event) => heard.rows(JSON.parse(event.data)));
  source.addEventListener("now", (event) => heard.now(JSON.parse(event.data)));
  source.addEventListener("error", () => { source.close(); heard.lost(); });
  return source;
}
