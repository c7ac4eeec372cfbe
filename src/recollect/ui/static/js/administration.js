// A secret is copied by a button, and what says so is read out.

import { tell } from "./messages.js";

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("button[data-copy]") : null;
  if (!(button instanceof HTMLButtonElement)) return;
  const field = document.getElementById(button.dataset.copy ?? "");
  const text = field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement ? field : null;
  if (!text) return;
  text.select();
  try {
    await navigator.clipboard.writeText(text.value);
  } catch {
    return; // over an unencrypted connection browsers have no clipboard: it is selected, and copied by hand
  }
  tell(button.dataset.copied ?? "", "good");
});
