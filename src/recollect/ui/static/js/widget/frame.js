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
  /** @type {{marker: number, source: string, section: string | null, page: number | null, quote: string}[]} */
  const citations = [];
  for await (const [name, data] of events(reply.body)) {
    if (name === "token") text.textContent += data.text;
    if (name === "citation") citations.push(data);
    if (name === "done") text.textContent = data.answer;
    if (name === "error") throw told(data);
    said.scrollTop = said.scrollHeight;
  }
  if (citations.length) place.append(sources(citations));
  said.scrollTop = said.scrollHeight;
}

/** @param {{detail?: string}} problem */
function told(problem) {
  const error = new Error(problem.detail || main.dataset.failed);
  error.name = "Told";
  return error;
}

/** @param {{marker: number, source: string, section: string | null, page: number | null, quote: string}[]} citations */
function sources(citations) {
  const list = document.createElement("ol");
  list.setAttribute("aria-label", main.dataset.sources ?? "");
  for (const one of citations) {
    const item = document.createElement("li");
    item.value = one.marker;
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    const where = [one.source, one.section, one.page ? `${main.dataset.page} ${one.page}` : null];
    summary.textContent = where.filter(Boolean).join(" › ");
    const quote = document.createElement("blockquote");
    quote.textContent = one.quote;
    details.append(summary, quote);
    if (/^https?:\/\//i.test(one.source)) {
      const link = document.createElement("a");
      link.href = one.source;
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      link.textContent = one.source;
      details.append(link);
    }
    item.append(details);
    list.append(item);
  }
  return list;
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
