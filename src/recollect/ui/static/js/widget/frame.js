// @ts-check
// The widget's frame: questions, answers as they are written, and what they rest on. Everything is put in as text.

const main = /** @type {HTMLElement} */ (document.querySelector("main.widget"));
const said = /** @type {HTMLElement} */ (document.getElementById("said"));
const form = /** @type {HTMLFormElement} */ (document.getElementById("ask"));
const field = /** @type {HTMLInputElement} */ (document.getElementById("question"));
const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
const origins = (main.dataset.origins ?? "").split(" ");

/** @type {string | undefined} */
let key;
addEventListener("message", (event) => {
  if (event.source !== window.parent || !origins.includes(event.origin)) return;
  if (typeof event.data?.recollect !== "string") return;
  key = event.data.recollect;
  button.disabled = false;
  field.focus();
});
const leave = () => window.parent.postMessage("recollect:close", "*");
document.getElementById("close")?.addEventListener("click", leave);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") leave();
});
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = field.value.trim();
  if (!key || !question || button.disabled) return;
  button.disabled = true;
  field.value = "";
  add("p", "asked", question);
  const answer = add("div", "answer", "");
  try {
    await ask(question, answer);
  } catch (error) {
    const text = error instanceof Error && error.name === "Told" ? error.message : (main.dataset.failed ?? "");
    answer.classList.add("note", "bad");
    answer.textContent = text;
  } finally {
    button.disabled = false;
    field.focus();
  }
});

/**
 * Asks, and shows the answer as it comes.
 * @param {string} question
 * @param {HTMLElement} place
 */
async function ask(question, place) {
  const reply = await fetch(main.dataset.ask ?? "", {
    method: "POST",
    credentials: "omit",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ question }),
  });
  if (!reply.ok || !reply.body) throw told(await reply.json());
  const text = document.createElement("p");
  place.append(text);
  /** @type {Citation[]} */
  const citations = [];
  for await (const [name, data] of events(reply.body)) {
    if (name === "token") text.textContent += data.text;
    if (name === "citation") citations.push(data);
    if (name === "done") {
      text.textContent = data.answer;
      if (data.passages.length) place.append(passages(data.passages));
    }
    if (name === "error") throw told(data);
    said.scrollTop = said.scrollHeight;
  }
  if (citations.length) place.append(sources(citations));
  // What does not fit is read from its question on.
  const begin = place.previousElementSibling ?? place;
  said.scrollTop += begin.getBoundingClientRect().top - said.getBoundingClientRect().top;
}

/** @param {{detail?: string}} problem */
function told(problem) {
  const error = new Error(problem.detail || main.dataset.failed);
  error.name = "Told";
  return error;
}

/**
 * @typedef {{marker: number, source: string, section: string | null, page: number | null}} Place
 * @typedef {Place & {quote: string}} Citation
 * @typedef {Place & {pieces: [string, boolean][]}} Passage Its text, piece by piece, with what is highlighted.
 */

/** @param {Citation[]} citations */
function sources(citations) {
  const list = document.createElement("ol");
  list.setAttribute("aria-label", main.dataset.sources ?? "");
  for (const one of citations) {
    const item = document.createElement("li");
    item.value = one.marker;
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = where(one);
    const quote = document.createElement("blockquote");
    quote.textContent = one.quote;
    details.append(summary, quote, ...links(one));
    item.append(details);
    list.append(item);
  }
  return list;
}

/** @param {Passage[]} shown */
function passages(shown) {
  const list = document.createElement("ol");
  list.setAttribute("aria-label", main.dataset.passages ?? "");
  list.className = "passages";
  for (const one of shown) {
    const item = document.createElement("li");
    item.value = one.marker;
    item.className = "card";
    const crumbs = document.createElement("p");
    crumbs.className = "crumbs";
    crumbs.textContent = `${one.marker} · ${where(one)}`;
    const text = document.createElement("p");
    text.className = "text";
    for (const [piece, isHighlighted] of one.pieces) {
      const part = document.createElement(isHighlighted ? "mark" : "span");
      part.textContent = piece;
      text.append(part);
    }
    item.append(crumbs, text, ...links(one));
    list.append(item);
  }
  return list;
}

/** @param {Place} one */
function where(one) {
  const parts = [one.source, one.section?.replaceAll(" > ", " › "), one.page ? `${main.dataset.page} ${one.page}` : null];
  return parts.filter(Boolean).join(" › ");
}

/**
 * To the source, where it is a page of the web.
 * @param {Place} one
 */
function links(one) {
  if (!/^https?:\/\//i.test(one.source)) return [];
  const link = document.createElement("a");
  link.href = one.source;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  link.textContent = one.source;
  return [link];
}

/**
 * Server-Sent Events of a body.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<[string, any]>}
 */
async function* events(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (name && data) yield [name, JSON.parse(data)];
    }
  }
}

/**
 * Adds something to what was said.
 * @param {string} tag
 * @param {string} kind
 * @param {string} text
 */
function add(tag, kind, text) {
  const element = document.createElement(tag);
  element.className = kind;
  element.textContent = text;
  said.append(element);
  said.scrollTop = said.scrollHeight;
  return element;
}

window.parent.postMessage("recollect:ready", "*");
