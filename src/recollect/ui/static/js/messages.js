// Short messages at the corner of the page, read out by screen readers.

const SECONDS = 8;

/**
 * Tell something.
 * @param {string} text
 * @param {"" | "good" | "warn" | "bad"} [kind]
 */
export function tell(text, kind = "") {
  const place = document.getElementById("messages");
  if (!place || !text) return;
  const note = document.createElement("p");
  note.className = `note ${kind}`;
  note.textContent = text;
  place.append(note);
  setTimeout(() => note.remove(), SECONDS * 1000);
}
