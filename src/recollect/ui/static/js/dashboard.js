// @ts-check
// The dashboard: charts, and new figures every few seconds while somebody can see them.

import { followCharts } from "./charts.js";

const SECONDS = 5;

followCharts();

const live = document.getElementById("live");
live?.addEventListener("click", () => live.setAttribute("aria-pressed", String(live.getAttribute("aria-pressed") !== "true")));

setInterval(() => {
  const figures = document.getElementById("figures");
  if (document.visibilityState !== "visible" || live?.getAttribute("aria-pressed") !== "true" || !figures) return;
  // Whoever reads a table, or is about to press a button, is not disturbed.
  if (figures.contains(document.activeElement)) return;
  // @ts-ignore - htmx is loaded by every page
  globalThis.htmx?.trigger(figures, "refresh");
}, SECONDS * 1000);

// Tables that are open stay open.
/** @type {string[]} */
let open = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.target instanceof Element && event.target.id === "figures") {
    open = [...event.target.querySelectorAll("figure:has(details[open])")].map((figure) => figure.id);
  }
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of open) document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
  open = [];
});
