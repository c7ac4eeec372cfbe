// Whether the server is there. While somebody sees the page it is asked now and then, seldom once nobody does anything,
// and not at all in tabs behind others. What goes and comes is told, and what had to wait goes on.

const WATCHED_MS = 4000;
const IDLE_MS = 20_000;
const IDLE_AFTER_MS = 60_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
/** A server that is busy takes its time; one that says nothing for so long is gone. */
const ANSWER_MS = 15_000;
const TOLD_MS = 6000;

/** What is told of on `document`. */
export const LOST = "recollect:lost";
export const BACK = "recollect:back";

let lost = false;
let wait = FIRST_WAIT_MS;
let lastTouched = Date.now();
let asking = false;
let leaving = false;
/** @type {number | undefined} */
let timer;
/** @type {HTMLElement | null} */
let note = null;

/** Watch for as long as the page is there. */
export function watchConnection() {
  // Whoever comes back to the page is told at once, however seldom it was asked meanwhile.
  for (const name of ["pointerdown", "pointermove", "keydown", "focus"]) {
    addEventListener(name, () => {
      const idle = Date.now() - lastTouched > IDLE_AFTER_MS;
      lastTouched = Date.now();
      if (idle && !lost) void look();
    }, { passive: true });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible") return clearTimeout(timer);
    lastTouched = Date.now();
    void look();
  });
  // What is asked while the page is left is broken off, and says nothing of the server.
  addEventListener("pagehide", () => (leaving = true));
  addEventListener("pageshow", () => (leaving = false));
  addEventListener("offline", () => isLost());
  addEventListener("online", () => void look());
  plan();
}

/** Somebody has not reached the server: it is looked at until it is there again. */
export function isLost() {
  if (lost) return;
  lost = true;
  wait = FIRST_WAIT_MS;
  tell(place()?.dataset.lost, "warn");
  document.dispatchEvent(new CustomEvent(LOST));
  plan();
}

/** Whether the server was gone when it was last looked at. */
export function isAway() {
  return lost;
}

function isBack() {
  if (!lost) return;
  lost = false;
  tell(place()?.dataset.back, "good");
  const told = note;
  setTimeout(() => told?.remove(), TOLD_MS);
  document.dispatchEvent(new CustomEvent(BACK));
}

function plan() {
  clearTimeout(timer);
  if (document.visibilityState !== "visible") return;
  let next = Date.now() - lastTouched > IDLE_AFTER_MS ? IDLE_MS : WATCHED_MS;
  if (lost) {
    next = wait;
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  }
  // Not all tabs at the same moment, least of all behind a server that has just begun.
  timer = setTimeout(() => void look(), next * (0.8 + 0.4 * Math.random()));
}

async function look() {
  if (asking) return;
  asking = true;
  try {
    const base = document.querySelector("meta[name=base]")?.getAttribute("content") ?? "";
    const reply = await fetch(`${base}/healthz`, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
    if (reply.ok) isBack();
    else isLost();
  } catch {
    if (!leaving) isLost();
  } finally {
    asking = false;
    plan();
  }
}

function place() {
  return document.getElementById("messages");
}

/**
 * @param {string | undefined} text
 * @param {"good" | "warn"} kind
 */
function tell(text, kind) {
  note?.remove();
  note = document.createElement("p");
  note.className = `note ${kind} connection`;
  note.textContent = text ?? "";
  place()?.append(note);
}
