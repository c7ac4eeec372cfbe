// @ts-check
// Files are sent a few at a time, each with its progress, and their jobs are followed together until they have ended.

import { BACK, isAway, isLost } from "./connection.js";

const AT_ONCE = 3;
const JOBS_AT_ONCE = 100;
const FIRST_LOOK = 400;
const SELDOM = 3000;
// So long a server that says nothing of it is left alone after it has refused because of too much.
const PAUSE_SECONDS = 2;
// A file whose sending breaks so often is the reason itself.
const MOST_LOST = 5;
// Of so many entries a folder is read before the page is drawn again.
const DRAWN = 50;

/**
 * A file on its way.
 * @typedef {object} Upload
 * @property {File} file
 * @property {string} name With the folders that it was dropped with.
 * @property {"waiting" | "sending" | "reading" | "done" | "failed"} state
 * @property {number} share How much of it is sent, then of its job.
 * @property {number} lost How often the connection broke while it was sent.
 * @property {number} [job]
 * @property {HTMLLIElement} row
 */

/**
 * Have a place take files that are dropped or chosen.
 * @param {HTMLElement} zone
 */
export function takeFiles(zone) {
  const list = zone.parentElement?.querySelector(".uploads");
  if (!(list instanceof HTMLElement)) return;
  const queue = new Queue(zone, list);
  for (const name of ["dragenter", "dragover"]) {
    zone.addEventListener(name, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  zone.addEventListener("dragleave", (event) => {
    if (!(event.relatedTarget instanceof Node) || !zone.contains(event.relatedTarget)) zone.classList.remove("over");
  });
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    // What was dropped is there during the event alone; its entries stay.
    const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry());
    const files = [...(event.dataTransfer?.files ?? [])];
    if (entries.some((entry) => entry)) void queue.addEntries(entries.filter((entry) => entry !== null));
    else void queue.add(files.map((file) => ({ file, name: file.name })));
  });
  for (const input of zone.querySelectorAll("input[type=file]")) {
    const take = () => {
      if (!(input instanceof HTMLInputElement)) return;
      void queue.add([...(input.files ?? [])].map((file) => ({ file, name: file.webkitRelativePath || file.name })));
      input.value = "";
    };
    input.addEventListener("change", take);
    // Whoever is quick has chosen before this script was there.
    take();
  }
  // Whoever misses the zone by a finger's breadth does not leave the page.
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
}

class Queue {
  /** @type {Upload[]} */ #all = [];
  /** @type {Upload[]} */ #waiting = [];
  /** @type {Map<number, Upload>} */ #followed = new Map();
  #sending = 0;
  #look = FIRST_LOOK;
  /** @type {number | undefined} */ #timer;
  #drawn = false;
  #resumes = 0;

  /**
   * @param {HTMLElement} zone
   * @param {HTMLElement} list
   */
  constructor(zone, list) {
    this.zone = zone;
    this.list = list;
    list.querySelector(".retry-all")?.addEventListener("click", () => {
      for (const one of this.#all) if (one.state === "failed") void this.#again(one);
    });
    list.addEventListener("click", (event) => {
      const button = event.target instanceof Element ? event.target.closest("button.retry") : null;
      const one = this.#all.find((each) => button && each.row.contains(button));
      if (one) void this.#again(one);
    });
    document.addEventListener(BACK, () => this.#send());
    window.addEventListener("beforeunload", (event) => {
      if (this.#sending + this.#waiting.length > 0) event.preventDefault();
    });
  }

  /**
   * Take entries of a drop, folders with everything in them.
   * @param {FileSystemEntry[]} entries
   */
  async addEntries(entries) {
    const found = [];
    for (const entry of entries) {
      for await (const one of filesIn(entry)) {
        found.push(one);
        if (found.length === DRAWN) await this.add(found.splice(0));
      }
    }
    await this.add(found);
  }

  /**
   * @param {{file: File, name: string}[]} files
   */
  async add(files) {
    if (!files.length) return;
    const rows = this.list.querySelector(".files");
    this.list.hidden = false;
    for (let start = 0; start < files.length; start += DRAWN) {
      const some = document.createDocumentFragment();
      for (const { file, name } of files.slice(start, start + DRAWN)) {
        const upload = { file, name, state: /** @type {"waiting"} */ ("waiting"), share: 0, lost: 0, row: rowOf(name) };
        this.#all.push(upload);
        this.#waiting.push(upload);
        this.#show(upload);
        some.append(upload.row);
      }
      rows?.append(some);
      this.#send();
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  #send() {
    while (this.#sending < AT_ONCE && Date.now() >= this.#resumes && !isAway()) {
      const next = this.#waiting.shift();
      if (!next) break;
      this.#sending += 1;
      this.#sendOne(next);
    }
    this.#summarise();
  }

  /** @param {Upload} one */
  #sendOne(one) {
    const form = new FormData();
    form.append("file", one.file, one.name);
    if (one.name.includes("/")) form.append("folders", "true");
    const request = new XMLHttpRequest();
    request.open("POST", this.zone.dataset.upload ?? "");
    request.setRequestHeader("HX-Request", "true");
    one.state = "sending";
    one.share = 0;
    request.upload.addEventListener("progress", (event) => {
      one.share = event.lengthComputable ? event.loaded / event.total : 0;
      this.#show(one);
    });
    const ended = (/** @type {string | null} */ problem) => {
      this.#sending -= 1;
      if (problem !== null) this.#fail(one, problem);
      this.#send();
    };
    request.addEventListener("error", () => {
      // It is sent again once the server is there again; what has arrived already is found unchanged then.
      if (one.lost > MOST_LOST) return ended(this.zone.dataset.textLost ?? "");
      one.lost += 1;
      one.state = "waiting";
      one.share = 0;
      this.#show(one);
      this.#waiting.unshift(one);
      isLost();
      ended(null);
    });
    request.addEventListener("load", () => {
      if (request.status === 429) {
        // Too much at once for this server: what is left waits, this one first.
        one.state = "waiting";
        one.share = 0;
        this.#show(one);
        this.#waiting.unshift(one);
        this.#pause(Number(request.getResponseHeader("Retry-After")) || PAUSE_SECONDS);
        return ended(null);
      }
      if (request.status !== 202) return ended(saidBy(request.responseText) || `${request.status} ${request.statusText}`);
      one.job = JSON.parse(request.responseText).jobs[0].job_id;
      this.#follow(one);
      ended(null);
    });
    this.#show(one);
    request.send(form);
  }

  /**
   * Send nothing for a while, and say so; what is on its way already comes through or waits too.
   * @param {number} seconds
   */
  #pause(seconds) {
    const resumes = Date.now() + seconds * 1000;
    if (resumes <= this.#resumes) return;
    this.#resumes = resumes;
    this.#tellPause();
    setTimeout(() => {
      if (this.#resumes !== resumes) return;
      this.#resumes = 0;
      this.#tellPause();
      this.#send();
    }, seconds * 1000);
  }

  #tellPause() {
    const note = this.list.querySelector(".paused");
    if (!(note instanceof HTMLElement)) return;
    note.hidden = Date.now() >= this.#resumes;
    note.textContent = note.hidden ? "" : (this.zone.dataset.textPaused ?? "");
  }

  /** @param {Upload} one */
  #follow(one) {
    if (one.job === undefined) return;
    one.state = "reading";
    one.share = 0;
    this.#followed.set(one.job, one);
    this.#show(one);
    this.#summarise();
    this.#look = FIRST_LOOK;
    if (this.#timer === undefined) this.#timer = setTimeout(() => void this.#lookAtJobs(), this.#look);
  }

  async #lookAtJobs() {
    const some = [...this.#followed.keys()].slice(0, JOBS_AT_ONCE);
    let moved = false;
    try {
      const reply = await fetch(`${this.zone.dataset.progress}?${some.map((job) => `job=${job}`).join("&")}`);
      if (reply.ok) moved = this.#learn(some, (await reply.json()).jobs);
    } catch {
      // The server is away for a moment: its jobs go on when it is back, and so does this.
    }
    this.#look = moved ? FIRST_LOOK : Math.min(this.#look * 1.5, SELDOM);
    this.#timer = this.#followed.size ? setTimeout(() => void this.#lookAtJobs(), this.#look) : undefined;
    this.#summarise();
  }

  /**
   * @param {number[]} asked
   * @param {{job_id: number, status: string, share: number, error: string | null, document_id: number | null, outcome: string | null}[]} jobs
   * @returns {boolean} Whether any has come further.
   */
  #learn(asked, jobs) {
    let moved = false;
    const told = new Map(jobs.map((job) => [job.job_id, job]));
    for (const number of asked) {
      const one = this.#followed.get(number);
      const job = told.get(number);
      if (!one) continue;
      const ended = !job || ["succeeded", "failed", "cancelled"].includes(job.status);
      moved ||= ended || job.share !== one.share;
      // Behind those that were not asked for yet.
      this.#followed.delete(number);
      if (!ended) {
        this.#followed.set(number, one);
        one.share = job.share;
        this.#show(one);
      } else if (job?.status === "succeeded") {
        one.state = "done";
        one.share = 1;
        this.#show(one, { document: job.document_id, unchanged: job.outcome === "unchanged" });
      } else {
        this.#fail(one, job ? (job.error ?? "") : (this.zone.dataset.textGone ?? ""));
      }
    }
    return moved;
  }

  /**
   * @param {Upload} one
   * @param {string} problem
   */
  #fail(one, problem) {
    one.state = "failed";
    one.share = 0;
    this.#show(one, { problem });
    this.#summarise();
  }

  /**
   * @param {Upload} one
   * @returns {Promise<void>}
   */
  async #again(one) {
    if (one.job === undefined) {
      one.lost = 0;
      one.state = "waiting";
      this.#waiting.push(one);
      this.#show(one);
      this.#send();
      return;
    }
    const wait = this.#resumes - Date.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const reply = await fetch(`${this.zone.dataset.retry}${one.job}/retry`, { method: "POST" }).catch(() => null);
    if (reply?.ok) return this.#follow(one);
    if (reply?.status === 429) {
      this.#pause(Number(reply.headers.get("Retry-After")) || PAUSE_SECONDS);
      one.state = "waiting";
      this.#show(one);
      return this.#again(one);
    }
    if (reply?.status === 404) one.job = undefined;
    const told = await reply?.json().catch(() => null);
    this.#fail(one, told?.detail ?? this.zone.dataset.textLost ?? "");
  }

  /**
   * @param {Upload} one
   * @param {{problem?: string, document?: number | null, unchanged?: boolean}} [outcome]
   */
  #show(one, outcome = {}) {
    const texts = this.zone.dataset;
    const { row } = one;
    row.dataset.state = one.state;
    const bar = row.querySelector("progress");
    if (bar) {
      bar.hidden = one.state === "failed" || one.state === "done";
      bar.value = one.state === "reading" ? 0.5 + one.share / 2 : one.share / 2;
    }
    const said = {
      waiting: texts.textWaiting,
      sending: texts.textSending,
      reading: texts.textReading,
      done: outcome.unchanged ? texts.textUnchanged : texts.textDone,
      failed: texts.textFailed,
    }[one.state];
    const badge = row.querySelector(".badge");
    if (badge && badge.textContent !== said) badge.textContent = said ?? "";
    badge?.classList.toggle("good", one.state === "done");
    badge?.classList.toggle("bad", one.state === "failed");
    const problem = row.querySelector(".problem");
    if (problem) problem.textContent = outcome.problem ?? "";
    row.querySelector("button, a")?.remove();
    if (one.state === "failed") {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "retry";
      button.textContent = texts.textRetry ?? "";
      button.setAttribute("aria-label", `${texts.textRetry}: ${one.name}`);
      row.append(button);
    } else if (one.state === "done" && outcome.document) {
      const link = document.createElement("a");
      link.href = `${texts.document}${outcome.document}`;
      link.textContent = texts.textOpen ?? "";
      link.setAttribute("aria-label", `${texts.textOpen}: ${one.name}`);
      row.append(link);
    }
  }

  /** The line above the list, at most once a picture of the page. */
  #summarise() {
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      this.#drawn = false;
      const done = this.#all.filter((one) => one.state === "done").length;
      const failed = this.#all.filter((one) => one.state === "failed").length;
      const text = (this.zone.dataset.textSummary ?? "")
        .replace("{done}", String(done))
        .replace("{all}", String(this.#all.length))
        .replace("{failed}", String(failed));
      const line = this.list.querySelector(".summary");
      if (line && line.textContent !== text) line.textContent = text;
      const overall = this.list.querySelector("progress.overall");
      if (overall instanceof HTMLProgressElement) overall.value = (done + failed) / Math.max(this.#all.length, 1);
      const again = this.list.querySelector(".retry-all");
      if (again instanceof HTMLElement) again.hidden = failed < 2;
    });
  }
}

/**
 * Why a server refuses, in its words.
 * @param {string} html
 */
function saidBy(html) {
  return new DOMParser().parseFromString(html, "text/html").querySelector("[role=alert]")?.textContent?.trim();
}

/**
 * A row for a file; what it is called is text and nothing else.
 * @param {string} name
 */
function rowOf(name) {
  const row = document.createElement("li");
  const title = document.createElement("span");
  title.className = "name";
  title.textContent = name;
  const badge = document.createElement("span");
  badge.className = "badge";
  const bar = document.createElement("progress");
  bar.max = 1;
  bar.value = 0;
  bar.setAttribute("aria-label", name);
  const problem = document.createElement("p");
  problem.className = "problem small";
  row.append(title, badge, bar, problem);
  return row;
}

/**
 * The files of an entry, and of everything below it.
 * @param {FileSystemEntry} entry
 * @returns {AsyncGenerator<{file: File, name: string}>}
 */
async function* filesIn(entry) {
  if (entry.isFile) {
    const own = /** @type {FileSystemFileEntry} */ (entry);
    const file = await new Promise((resolve) => own.file(resolve, () => resolve(null)));
    if (file) yield { file, name: entry.fullPath.replace(/^\//, "") };
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    // A hundred at a time, until there are none.
    const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!some.length) return;
    for (const inner of some) yield* filesIn(inner);
  }
}
