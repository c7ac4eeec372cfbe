// @ts-check
// The panel with the source of a quote: scrolled to the mark, as a page or as text.

import { showPages, toMark } from "./pdf.js";

/**
 * Make the panels below an element work; each of them once.
 * @param {ParentNode} root
 */
export function showSources(root) {
  for (const panel of root.querySelectorAll("[data-source]")) {
    if (!(panel instanceof HTMLElement) || panel.dataset.source) continue;
    panel.dataset.source = "shown";
    panel.addEventListener("click", (event) => {
      const button = event.target instanceof Element ? event.target.closest("button[data-show]") : null;
      if (button instanceof HTMLElement) show(panel, button.dataset.show ?? "");
    });
    show(panel, panel.querySelector("[data-shown=page]") ? "page" : "text");
  }
}

/**
 * @param {HTMLElement} panel
 * @param {string} wanted
 */
function show(panel, wanted) {
  for (const button of panel.querySelectorAll("button[data-show]")) {
    button.setAttribute("aria-pressed", String(button instanceof HTMLElement && button.dataset.show === wanted));
  }
  for (const body of panel.querySelectorAll("[data-shown]")) {
    if (!(body instanceof HTMLElement)) continue;
    body.hidden = body.dataset.shown !== wanted;
    if (body.hidden) continue;
    const pdf = body.querySelector("[data-pdf]");
    if (pdf instanceof HTMLElement) showPages(pdf);
    toMark(body);
  }
}
