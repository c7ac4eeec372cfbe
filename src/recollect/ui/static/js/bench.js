// @ts-check
// The search bench: short addresses, what differs is marked while it is typed, and a slider over the history.

import { followCharts } from "./charts.js";
import { showSources } from "./source_panel.js";

followCharts();
const bench = document.getElementById("bench-page");
if (bench) showSources(bench);

const form = document.getElementById("bench");

// What is empty says nothing: the address is what was asked.
form?.addEventListener("htmx:configRequest", (event) => {
  const { parameters } = /** @type {CustomEvent<{parameters: FormData}>} */ (event).detail;
  for (const name of new Set(parameters.keys())) {
    if (!String(parameters.get(name)).trim()) parameters.delete(name);
  }
});

form?.addEventListener("input", (event) => {
  const row = event.target instanceof Element ? event.target.closest("table.configurations tr") : null;
  if (!row) return;
  const values = [...row.querySelectorAll("input, select")].map((one) => /** @type {HTMLInputElement} */ (one).value);
  row.classList.toggle("differs", values[0] !== values[1]);
});

const slider = document.getElementById("as-of-slider");
const field = document.getElementById("as_of");
if (slider instanceof HTMLInputElement && field instanceof HTMLInputElement) follow(slider, field);

/**
 * @param {HTMLInputElement} range
 * @param {HTMLInputElement} moment
 */
function follow(range, moment) {
  const first = Date.parse(range.dataset.first ?? "");
  const last = Math.max(Date.parse(range.dataset.last ?? ""), first + 1);
  const steps = Number(range.max);
  const at = Date.parse(range.dataset.at ?? "");
  // The last step is the present; the ones before lie between the first and the last change.
  const moments = steps - 1;
  const tell = () => {
    const chosen = Number(range.value);
    // What became known in the same millisecond is known a millisecond later.
    const when = new Date(first + 1 + ((last - first) * chosen) / moments);
    moment.value = chosen === steps ? "" : when.toISOString();
    range.setAttribute("aria-valuetext", chosen === steps ? (range.dataset.now ?? "") : when.toLocaleString(document.documentElement.lang));
  };
  if (!Number.isNaN(at)) {
    range.value = String(Math.round((Math.min(Math.max(at - first, 0), last - first) / (last - first)) * moments));
  }
  range.hidden = false;
  range.addEventListener("input", tell);
  range.addEventListener("change", () => {
    const query = document.getElementById("q");
    if (query instanceof HTMLInputElement && query.value.trim()) range.form?.requestSubmit();
  });
}
