// The source beside what quotes it: opened by a footnote or a result, closed with a button or Escape, which gives the focus back.

import { localiseMoments } from "./moments.js";

/** @param {HTMLElement} page With the panel, and what opens it. */
export function showSources(page) {
  const panel = page.querySelector("aside.beside");
  const content = page.querySelector("#source-content");
  if (!(panel instanceof HTMLElement) || !content) return;
  /** @type {HTMLElement | null} */
  let opener = null;

  const close = () => {
    panel.hidden = true;
    content.replaceChildren();
    page.querySelectorAll("[aria-current=location]").forEach((one) => one.removeAttribute("aria-current"));
    opener?.focus();
    opener = null;
  };

  page.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target instanceof HTMLElement && event.target.matches(".footnote, .cited")) opener = event.target;
  });
  content.addEventListener("htmx:afterSwap", async () => {
    panel.hidden = false;
    page.querySelectorAll("[aria-current=location]").forEach((one) => one.removeAttribute("aria-current"));
    opener?.setAttribute("aria-current", "location");
    localiseMoments(content);
    // Only for whoever opens one: pages of PDFs are drawn by a large library.
    const sources = await import("./source.js");
    sources.showSources(content);
    const title = content.querySelector("[data-source-title]");
    if (title instanceof HTMLElement) title.focus({ preventScroll: true });
  });
  panel.querySelector("[data-action=close-source]")?.addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden && !document.querySelector("dialog[open], details.menu[open]")) close();
  });
}
