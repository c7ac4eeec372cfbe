// @ts-check
// The page of one document: dialogs, chunks that are pointed at, the quote that was asked for, and pages of its original.

import { browsePages } from "./pdf.js";

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const opener = target?.closest("button[data-opens]");
  if (opener instanceof HTMLElement) {
    const dialog = document.getElementById(opener.dataset.opens ?? "");
    if (dialog instanceof HTMLDialogElement) dialog.showModal();
  }
  if (target?.closest("button[data-closes]")) target.closest("dialog")?.close();
});

const text = document.querySelector("[data-chunked]");
const facts = document.querySelector("[data-chunk-facts]");

/**
 * Tell the facts of a chunk and show how far it reaches.
 * @param {string | undefined} number
 */
function showChunk(number) {
  if (!text || !number) return;
  for (const shown of text.querySelectorAll(".is-shown")) shown.classList.remove("is-shown");
  for (const piece of text.querySelectorAll(`.piece[data-chunks~="${CSS.escape(number)}"]`)) piece.classList.add("is-shown");
  const button = text.querySelector(`button[data-chunk="${CSS.escape(number)}"]`);
  if (button && facts) facts.textContent = button.getAttribute("aria-label");
}

for (const kind of ["pointerover", "focusin", "click"]) {
  text?.addEventListener(kind, (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const button = target?.closest("button[data-chunk]");
    if (button instanceof HTMLElement) showChunk(button.dataset.chunk);
    else if (kind === "pointerover") {
      const piece = target?.closest(".piece");
      if (piece instanceof HTMLElement) showChunk(piece.dataset.chunks?.split(" ").at(-1));
    }
  });
}

text?.querySelector("[data-draws-chunks]")?.addEventListener("change", (event) => {
  if (event.target instanceof HTMLInputElement) text.classList.toggle("is-plain", !event.target.checked);
});

text?.querySelector("mark")?.scrollIntoView({ block: "center" });

for (const element of document.querySelectorAll("[data-pdf][data-browsed]")) {
  if (element instanceof HTMLElement) browsePages(element);
}
