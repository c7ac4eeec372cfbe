// What every page does: moments in the browser's own zone, forms that need no button, errors of requests made by htmx.

import { BACK, isLost, watchConnection } from "./connection.js";
import { localiseMoments } from "./moments.js";
import { tell } from "./messages.js";

localiseMoments(document);
watchConnection();

// Of rows that are longer than the screen, the part that one is in is seen.
for (const list of document.querySelectorAll(".tabs, .areas")) {
  const current = list.querySelector("[aria-current=page]");
  if (current instanceof HTMLElement && list.scrollWidth > list.clientWidth) {
    const [row, one] = [list.getBoundingClientRect(), current.getBoundingClientRect()];
    list.scrollLeft += one.left - row.left - (row.width - one.width) / 2;
  }
}

// What is asked for again and again while it is waited for, and was asked for when the server was away.
document.addEventListener(BACK, () => {
  for (const one of document.querySelectorAll("[hx-get][hx-trigger^='load delay']")) {
    // @ts-ignore - htmx is loaded by every page
    globalThis.htmx?.trigger(one, "load");
  }
});

// A page that the browser has kept whole, and shows again on the way back, may be that of a login that has ended.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

document.addEventListener("change", (event) => {
  const form = event.target instanceof Element ? event.target.closest("form[data-submit-on-change]") : null;
  if (form instanceof HTMLFormElement) form.requestSubmit();
});

// A menu closes when something else is clicked, and with Escape, which gives the focus back.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (event.target instanceof Node && !menu.contains(event.target)) menu.removeAttribute("open");
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.removeAttribute("open");
  menu.querySelector("summary")?.focus();
});

document.addEventListener("htmx:load", (event) => {
  if (!(event.target instanceof Element)) return;
  localiseMoments(event.target);
  const part = event.target.parentElement ?? event.target;
  if (part.querySelector("[data-source]")) import("./source.js").then(({ showSources }) => showSources(part));
});
document.addEventListener("htmx:sendError", () => isLost());
document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = /** @type {CustomEvent<{xhr: XMLHttpRequest}>} */ (event).detail;
  const said = new DOMParser().parseFromString(xhr.responseText, "text/html").querySelector("[role=alert]");
  tell(said?.textContent?.trim() || `${xhr.status} ${xhr.statusText}`, "bad");
});
