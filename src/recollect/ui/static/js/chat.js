// @ts-check
// A conversation: questions are sent, and answers come as parts that the server has written.

import { takeFiles } from "./chat_files.js";
import { address, keepSettings, settingsOf } from "./chat_settings.js";
import { showSources } from "./source_panel.js";
import { AnswerStream, BrokenOffError, RefusedError } from "./chat_stream.js";
import { tell } from "./messages.js";
import { localiseMoments } from "./moments.js";

const NEAR_THE_END_PIXELS = 80;
const MARGIN_PIXELS = 24;
const MOST_BEFORE = 8;

// htmx comes behind this script, so that questions can be typed before it is there.
const loaded = new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));

/**
 * Put a part that the server has written into the page; htmx looks after what it holds.
 * @param {Element} target
 * @param {string} html
 * @param {"innerHTML" | "beforeend" | "outerHTML"} how
 */
function place(target, html, how) {
  // @ts-ignore - htmx is loaded beside this
  htmx.swap(target, html, { swapStyle: how, settleDelay: 0 });
}

class Chat {
  /** @type {AnswerStream | null} */
  #stream = null;
  /** @type {Element[]} */
  #replaced = [];
  #question = "";

  /**
   * @param {HTMLElement} root
   * @param {HTMLFormElement} form
   */
  constructor(root, form) {
    this.root = root;
    this.form = form;
    this.box = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem("question"));
    this.insteadOf = /** @type {HTMLInputElement} */ (form.elements.namedItem("instead_of"));
    this.turns = /** @type {HTMLElement} */ (root.querySelector("#turns"));
    this.lines = /** @type {HTMLElement} */ (root.querySelector("#turns > .lines"));
    this.notice = /** @type {HTMLElement} */ (root.querySelector("#notice"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.#stream && this.box.value.trim()) void this.ask(this.box.value, this.insteadOf.value);
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    this.box.addEventListener("input", () => this.grow());
    root.addEventListener("click", (event) => this.act(event));
    // Both have the page laid out at once: only where there is something to show.
    if (this.box.value) this.grow();
    if (this.lines.querySelector(".exchange")) this.turns.scrollTop = this.turns.scrollHeight;
  }

  /**
   * @param {string} question
   * @param {string} insteadOf the position of the question that it replaces, with all that comes after it
   */
  async ask(question, insteadOf) {
    const said = this.root.dataset;
    this.#question = question;
    this.#replaced = [...this.lines.querySelectorAll(".exchange")].filter(
      (one) => insteadOf && Number(one.getAttribute("data-position")) >= Number(insteadOf),
    );
    this.cancelEdit();
    this.box.value = "";
    this.grow();
    this.note("");
    this.busy(true);
    const body = settingsOf(this.form);
    body.set("question", question);
    if (insteadOf) body.set("instead_of", insteadOf);
    // What the server does not keep is sent, so that a question can refer to what was said before.
    for (const one of "unkept" in said ? [...this.lines.querySelectorAll(".exchange")].slice(-MOST_BEFORE) : []) {
      body.append("asked_before", one.querySelector(".said")?.textContent ?? "");
      body.append("answered_before", one.querySelector("[data-text]")?.textContent ?? "");
    }
    const paths = { ask: said.ask ?? "", streams: said.streams ?? "", health: said.health ?? "" };
    const stream = new AnswerStream(paths, {
      onEvent: (event) => {
        this.take(event.name, event.data);
        // The connection takes a moment to close; the next question need not wait for that.
        if (event.name === "done") this.ended(stream);
      },
      onLost: () => this.note(said.saidLost ?? "", "warn"),
      onBack: () => this.note(said.saidBack ?? "", "good"),
    });
    this.#stream = stream;
    try {
      await loaded;
      await stream.read(body);
    } catch (error) {
      if (this.#stream === stream) this.failed(error);
    } finally {
      this.ended(stream);
    }
  }

  /** @param {AnswerStream} stream */
  ended(stream) {
    if (this.#stream !== stream) return;
    this.#stream = null;
    this.busy(false);
  }

  /**
   * @param {string} name
   * @param {Record<string, string>} data
   */
  take(name, data) {
    const follows = this.turns.scrollHeight - this.turns.scrollTop - this.turns.clientHeight < NEAR_THE_END_PIXELS;
    const pending = this.lines.querySelector("[data-pending]");
    const part = (/** @type {string} */ which) => pending?.querySelector(`[data-${which}]`);
    if (name === "begin") {
      document.getElementById("welcome")?.remove();
      for (const one of this.#replaced) one.setAttribute("hidden", "");
      place(this.lines, data.html, "beforeend");
    } else if (name === "found") {
      const status = part("status");
      if (status) status.textContent = data.text;
    } else if (name === "piece") {
      const [blocks, tail, draft] = [part("blocks"), part("tail"), part("draft")];
      if (blocks && data.whole) place(blocks, data.whole, "beforeend");
      if (tail) place(tail, data.html, "innerHTML");
      if (draft) draft.textContent = "";
      part("status")?.setAttribute("hidden", "");
    } else if (name === "draft") {
      const draft = part("draft");
      if (draft) draft.textContent = data.text;
    } else if (name === "done") {
      for (const one of this.#replaced) one.remove();
      if (pending) place(pending, data.html, "outerHTML");
      localiseMoments(this.lines);
      if (data.title) {
        this.begun();
        this.named(data.title, data.menu);
        document.getElementById("conversations")?.dispatchEvent(new Event("conversations-changed"));
      }
      this.note("");
    } else if (name === "error") {
      this.failed(new RefusedError(data.detail));
    }
    if (follows || name === "begin") this.turns.scrollTop = this.turns.scrollHeight;
    // Passages come all at once, and are read from the first one on.
    const last = this.lines.lastElementChild;
    if (name === "done" && last?.querySelector(".without .passages")) {
      this.turns.scrollTop += last.getBoundingClientRect().top - this.turns.getBoundingClientRect().top - MARGIN_PIXELS;
    }
  }

  /** @param {unknown} error */
  failed(error) {
    this.lines.querySelector("[data-pending]")?.remove();
    for (const one of this.#replaced) one.removeAttribute("hidden");
    this.#replaced = [];
    if (!this.box.value) this.box.value = this.#question;
    this.grow();
    const said = this.root.dataset;
    if (error instanceof DOMException && error.name === "AbortError") this.note(said.saidStopped ?? "");
    else if (error instanceof BrokenOffError) this.note(`${said.saidBack} ${said.saidBroken}`, "warn");
    else if (error instanceof RefusedError) this.note(error.message, "bad");
    else {
      this.note(document.body.dataset.unreachable ?? "", "bad");
      throw error;
    }
    this.box.focus();
  }

  /** The conversation has an address of its own now. */
  begun() {
    const page = new URL(this.root.dataset.page ?? "", location.href);
    if (page.pathname !== location.pathname) history.replaceState(null, "", page.pathname + address(settingsOf(this.form)));
  }

  /**
   * @param {string} title what the conversation is called
   * @param {string} html what can be done with it
   */
  named(title, html) {
    const [heading, menu] = [document.getElementById("chat-title"), document.getElementById("menu")];
    if (heading) heading.textContent = title;
    if (menu && !menu.querySelector("form")) place(menu, html, "innerHTML");
    document.title = document.title.replace(/^.* – /, `${title} – `);
    const list = document.getElementById("conversations");
    list?.setAttribute("hx-vals", JSON.stringify({ current: this.root.dataset.session }));
  }

  /** @param {MouseEvent} event */
  act(event) {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (!button) return;
    const exchange = button.closest(".exchange");
    const position = exchange?.getAttribute("data-position") ?? "";
    const question = exchange?.querySelector(".said")?.textContent ?? "";
    switch (button.dataset.action) {
      case "stop":
        void this.#stream?.stop();
        break;
      case "retry":
        if (!this.#stream) void this.ask(question, position);
        break;
      case "edit":
        this.edit(question, position);
        break;
      case "cancel-edit":
        this.box.value = "";
        this.cancelEdit();
        this.box.focus();
        break;
      case "copy":
        void this.copy(exchange?.querySelector("[data-text]")?.textContent ?? "");
        break;
      case "side": {
        const open = this.root.toggleAttribute("data-side");
        button.setAttribute("aria-expanded", String(open));
        break;
      }
    }
    if (button.dataset.opens) this.dialog(button.dataset.opens)?.showModal();
    if (button.dataset.closes) this.dialog(button.dataset.closes)?.close();
  }

  /**
   * @param {string} question
   * @param {string} position
   */
  edit(question, position) {
    this.insteadOf.disabled = false;
    this.insteadOf.value = position;
    this.box.value = question;
    document.getElementById("editing")?.removeAttribute("hidden");
    this.grow();
    this.box.focus();
  }

  cancelEdit() {
    this.insteadOf.disabled = true;
    this.insteadOf.value = "";
    document.getElementById("editing")?.setAttribute("hidden", "");
  }

  /** @param {string} text */
  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Only pages that came encrypted, or from this machine, may write to the clipboard so.
      const field = document.createElement("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    tell(this.root.dataset.saidCopied ?? "", "good");
  }

  /** @param {string} id */
  dialog(id) {
    const found = document.getElementById(id);
    return found instanceof HTMLDialogElement ? found : null;
  }

  /**
   * @param {string} text
   * @param {"" | "good" | "warn" | "bad"} [kind]
   */
  note(text, kind = "") {
    const note = document.createElement("p");
    note.className = `note ${kind}`;
    note.textContent = text;
    this.notice.replaceChildren(...(text ? [note] : []));
  }

  /** @param {boolean} is */
  busy(is) {
    document.getElementById("stop")?.toggleAttribute("hidden", !is);
    document.getElementById("send")?.toggleAttribute("hidden", is);
    this.lines.toggleAttribute("data-busy", is);
  }

  grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, window.innerHeight / 3)}px`;
  }
}

const root = document.getElementById("chat");
const form = document.getElementById("composer");
if (root && form instanceof HTMLFormElement) {
  showSources(root);
  if (form.elements.namedItem("question")) {
    const chat = new Chat(root, form);
    keepSettings(form);
    takeFiles(root, () => chat.begun());
    chat.box.focus();
  }
}
