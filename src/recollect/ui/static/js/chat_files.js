// Files that are dropped into a conversation, or chosen: sent to it alone.

import { tell } from "./messages.js";

/**
 * @param {HTMLElement} chat
 * @param {() => void} begun called when the conversation has files, and with them an address
 */
export function takeFiles(chat, begun) {
  const chosen = chat.querySelector("#attach");
  const list = chat.querySelector("#files");
  const thread = chat.querySelector("#thread");
  if (!(chosen instanceof HTMLInputElement) || !list || !(thread instanceof HTMLElement)) return;

  /** @param {FileList | null | undefined} files */
  const send = async (files) => {
    if (!files?.length) return;
    const form = new FormData();
    for (const file of files) form.append("file", file);
    list.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(chat.dataset.files ?? "", { method: "POST", body: form, headers: { "HX-Request": "true" } });
      const html = await response.text();
      if (response.ok) {
        // @ts-ignore - htmx is loaded beside this
        htmx.swap(list, html, { swapStyle: "innerHTML" });
        begun();
      } else {
        const said = new DOMParser().parseFromString(html, "text/html").querySelector("[role=alert]");
        tell(said?.textContent?.trim() || `${response.status} ${response.statusText}`, "bad");
      }
    } catch {
      tell(document.body.dataset.unreachable ?? "", "bad");
    } finally {
      list.removeAttribute("aria-busy");
    }
  };

  const take = () => void send(chosen.files).then(() => (chosen.value = ""));
  chosen.addEventListener("change", take);
  // Whoever is quick has chosen before this script was there.
  take();
  let depth = 0;
  const over = (/** @type {DragEvent} */ event, /** @type {number} */ step) => {
    if (!event.dataTransfer?.types.includes("Files")) return false;
    event.preventDefault();
    depth += step;
    if (depth > 0) thread.setAttribute("data-drop", chat.dataset.saidDrop ?? "");
    else thread.removeAttribute("data-drop");
    return true;
  };
  thread.addEventListener("dragenter", (event) => over(event, 1));
  thread.addEventListener("dragover", (event) => over(event, 0));
  thread.addEventListener("dragleave", (event) => over(event, -1));
  thread.addEventListener("drop", (event) => {
    if (over(event, -depth)) void send(event.dataTransfer?.files);
  });
}
