// @ts-check
// The library: what is empty stands in no address, documents are chosen together, files are dropped.

import { takeFiles } from "./uploads.js";

// htmx sends every field of a form: an address says what was chosen and nothing else.
document.addEventListener("htmx:configRequest", (event) => {
  const { detail } = /** @type {CustomEvent<{elt: Element, parameters: FormData}>} */ (event);
  if (!(detail.elt instanceof HTMLFormElement) || detail.elt.id !== "filters") return;
  for (const [name, value] of [...detail.parameters.entries()]) {
    if (value === "") detail.parameters.delete(name);
  }
});

/** Show how many documents are chosen, and what can be done with them. */
function showChosen() {
  const form = document.getElementById("chosen");
  const bar = form?.querySelector(".bulk");
  if (!form || !(bar instanceof HTMLElement)) return;
  const boxes = [...form.querySelectorAll("input[name=document]")].filter((one) => one instanceof HTMLInputElement);
  const chosen = boxes.filter((one) => one.checked);
  for (const box of boxes) {
    const job = box.parentElement?.querySelector("input[name=job]");
    if (job instanceof HTMLInputElement) job.disabled = !box.checked;
  }
  bar.hidden = chosen.length === 0;
  const count = bar.querySelector(".count");
  if (count instanceof HTMLElement) {
    const text = chosen.length === 1 ? count.dataset.one : count.dataset.many;
    count.textContent = (text ?? "").replace("{count}", String(chosen.length));
  }
  const all = form.querySelector("input.all");
  if (all instanceof HTMLInputElement) {
    all.checked = chosen.length > 0 && chosen.length === boxes.length;
    all.indeterminate = chosen.length > 0 && chosen.length < boxes.length;
  }
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.closest("#chosen")) return;
  if (box.classList.contains("all")) {
    for (const one of document.querySelectorAll("#chosen input[name=document]")) {
      if (one instanceof HTMLInputElement) one.checked = box.checked;
    }
  }
  showChosen();
});

// The preview takes a file that is dropped upon its text, by the field that it would be chosen with.
const preview = document.getElementById("preview");
preview?.addEventListener("dragover", (event) => event.preventDefault());
preview?.addEventListener("drop", (event) => {
  const field = preview.querySelector("input[type=file]");
  if (!event.dataTransfer?.files.length || !(field instanceof HTMLInputElement)) return;
  event.preventDefault();
  field.files = event.dataTransfer.files;
});

const zone = document.querySelector(".dropzone");
if (zone instanceof HTMLElement) takeFiles(zone);
showChosen();
