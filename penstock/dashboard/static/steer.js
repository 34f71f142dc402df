// Forms that change a flow: bound, replicas, lifetime, policy. Each is one POST, and a decision in the log.

import { set } from "./data.js";
import { h } from "./dom.js";

const MODES = [["on", "carry out"], ["recommend", "only recommend"], ["off", "do not ask"]];

async function send(wanted, said) {
  said.textContent = "…";
  try {
    const answer = await set(wanted);
    const late = answer.in_effect ? [] : ["not every executor has confirmed it yet"];
    const gap = answer.gap_ms ? [`the sources stood still for ${answer.gap_ms.toFixed(0)} ms`] : [];
    said.textContent = [...answer.changes, ...gap, ...late, answer.note].filter(Boolean).join("; ");
  } catch (problem) {
    said.textContent = `refused: ${problem.message}`;
  }
}

function form({ label, unit, value, step, least, wanted }) {
  const said = h("output", { class: "said" });
  const field = h("input", { type: "number", min: least, step, value, required: "", "aria-label": `${label}${unit ? ` in ${unit}` : ""}` });
  return h("form", { class: "steer", onsubmit: (event) => { event.preventDefault(); send(wanted(Number(field.value)), said); } },
    h("span", {}, label), field, unit ? h("span", {}, unit) : null, h("button", {}, "set"), said);
}

export const boundForm = (name, value) => form({
  label: `bound of ${name}`, unit: "ms", value, step: "any", least: 0, wanted: (ms) => ({ bounds_ms: { [name]: ms } }),
});

export const replicasForm = (task) => form({
  label: `replicas of ${task.name} (${task.lowest} to ${task.highest})`, value: task.replicas, step: 1, least: 1,
  wanted: (replicas) => ({ replicas: { [task.name]: replicas } }),
});

export const lifetimeForm = (stream, value) => form({
  label: `lifetime of ${stream}`, unit: "ms", value, step: "any", least: 0, wanted: (ms) => ({ lifetimes_ms: { [stream]: ms } }),
});

export function policyForm(policy, mode) {
  const said = h("output", { class: "said" });
  const choice = h("select", { "aria-label": `policy ${policy}` }, MODES.map(([name, words]) => h("option", { value: name }, `${name}: ${words}`)));
  choice.value = mode;
  return h("form", { class: "steer", onsubmit: (event) => { event.preventDefault(); send({ policy: choice.value }, said); } },
    h("span", {}, `policy ${policy}`), choice, h("button", {}, "set"), said);
}
