// An answer as Server-Sent Events: read with fetch, gone on with where its connection broke.

/** Seconds that the server keeps an answer for a page that has lost it. */
const KEPT_SECONDS = 60;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 4000;

/**
 * @typedef {{name: string, id: number, data: Record<string, string>}} AnswerEvent
 * @typedef {{
 *   onEvent: (event: AnswerEvent) => void,
 *   onLost: () => void,
 *   onBack: () => void,
 * }} Listener
 */

/** What a server says instead of an answer. */
export class RefusedError extends Error {}

/** The answer broke off, and its rest is nowhere. */
export class BrokenOffError extends Error {}

/** One answer that is being written. */
export class AnswerStream {
  #abort = new AbortController();
  #name = "";
  #last = 0;
  #ended = false;

  /**
   * @param {{ask: string, streams: string, health: string}} paths
   * @param {Listener} listener
   */
  constructor(paths, listener) {
    this.paths = paths;
    this.listener = listener;
  }

  /**
   * Ask, and read until the end of the answer.
   * @param {URLSearchParams} question
   */
  async read(question) {
    let response;
    try {
      response = await this.#fetch(this.paths.ask, {
        method: "POST",
        body: question,
        headers: { Accept: "text/event-stream", "HX-Request": "true", "Recollect-Keep-Stream": String(KEPT_SECONDS) },
      });
    } catch (error) {
      if (this.#abort.signal.aborted) throw error;
      await this.#waitForServer();
      throw new BrokenOffError();
    }
    this.#name = response.headers.get("Recollect-Stream") ?? "";
    for (;;) {
      try {
        await this.#take(response);
        if (this.#ended) return;
      } catch (error) {
        if (this.#abort.signal.aborted || !(error instanceof TypeError)) throw error;
      }
      response = await this.#resumed();
    }
  }

  /** The model stops, and nothing of the answer is kept. */
  async stop() {
    this.#ended = true;
    this.#abort.abort();
    if (!this.#name) return;
    await fetch(this.paths.streams + this.#name, { method: "DELETE" }).catch(() => undefined);
  }

  /** Go away, and leave the answer to the server, which keeps it for a while. */
  leave() {
    this.#abort.abort();
  }

  /** @param {Response} response */
  async #take(response) {
    if (!response.body) throw new BrokenOffError();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        this.#tell(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  /** @param {string} frame */
  #tell(frame) {
    const event = { name: "message", id: 0, data: {} };
    for (const line of frame.split("\n")) {
      const [field, rest] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()];
      if (field === "event") event.name = rest;
      else if (field === "id") event.id = Number(rest);
      else if (field === "data") event.data = JSON.parse(rest);
    }
    if (!event.id || event.id <= this.#last) return;
    this.#last = event.id;
    if (event.name === "done" || event.name === "error") this.#ended = true;
    this.listener.onEvent(event);
  }

  /** The rest of the answer, once the server can be reached again. */
  async #resumed() {
    if (!this.#name) throw new BrokenOffError();
    const again = () => this.#fetch(this.paths.streams + this.#name, { headers: { "Last-Event-ID": String(this.#last) } });
    try {
      return await again();
    } catch (error) {
      if (this.#abort.signal.aborted) throw error;
      if (error instanceof RefusedError) throw new BrokenOffError();
    }
    await this.#waitForServer();
    try {
      return await again();
    } catch (error) {
      throw error instanceof RefusedError ? new BrokenOffError() : error;
    }
  }

  async #waitForServer() {
    this.listener.onLost();
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (this.#abort.signal.aborted) throw new DOMException("", "AbortError");
      try {
        if ((await this.#fetch(this.paths.health, { cache: "no-store" })).ok) break;
      } catch (error) {
        if (this.#abort.signal.aborted) throw error;
      }
    }
    this.listener.onBack();
  }

  /**
   * @param {string} path
   * @param {RequestInit} options
   */
  async #fetch(path, options) {
    const response = await fetch(path, { ...options, signal: this.#abort.signal });
    const login = response.headers.get("HX-Redirect");
    if (login) location.assign(login);
    if (response.ok) return response;
    const said = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("[role=alert]");
    throw new RefusedError(said?.textContent?.trim() || `${response.status} ${response.statusText}`);
  }
}
