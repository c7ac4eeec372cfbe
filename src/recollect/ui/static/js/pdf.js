// @ts-check
// Draws pages of a PDF and marks what is quoted of them. Nothing that the file holds is run: no scripts, no links, no forms.

import { findQuote } from "./quotes.js";

const VENDOR = new URL("../vendor/pdfjs-dist/", import.meta.url);
/** So much of a file is fetched at a time: pages of a long one without all of it. */
const RANGE_BYTES = 1 << 20;
/** Screens finer than that show no more of a page. */
const MOST_PIXEL_RATIO = 2;

/** @type {Promise<any> | undefined} */
let library;

function loaded() {
  library ??= import(new URL("pdf.min.mjs", VENDOR).href).then((pdfjs) => {
    pdfjs.GlobalWorkerOptions.workerSrc = new URL("pdf.worker.min.mjs", VENDOR).href;
    return pdfjs;
  });
  return library;
}

/**
 * Open a file.
 * @param {string} url
 */
async function opened(url) {
  const pdfjs = await loaded();
  const task = pdfjs.getDocument({
    url,
    rangeChunkSize: RANGE_BYTES,
    disableAutoFetch: true,
    disableStream: true,
    disableWorkerRendering: true,
    cMapUrl: new URL("cmaps/", VENDOR).href,
    standardFontDataUrl: new URL("standard_fonts/", VENDOR).href,
    wasmUrl: new URL("wasm/", VENDOR).href,
    verbosity: 0,
  });
  return { pdfjs, task, file: await task.promise };
}

/**
 * Draw the pages that stand in an element, each an element `[data-page]`, and tell in its `[data-state]` how it went.
 * @param {HTMLElement} element
 */
export async function showPages(element) {
  const url = element.dataset.pdf;
  if (!url || element.dataset.drawn) return;
  element.dataset.drawn = "begun";
  try {
    const { pdfjs, task, file } = await opened(url);
    whenGone(element, () => task.destroy());
    const outcomes = [];
    for (const place of pages(element)) {
      place.dataset.page = String(Math.min(Math.max(1, Number(place.dataset.page)), file.numPages));
      outcomes.push(await drawPage(pdfjs, file, place));
    }
    tellState(element, outcomes);
    toMark(element);
  } catch (error) {
    console.info("The pages cannot be drawn.", error);
    tellState(element, ["failed"]);
  }
  element.dataset.drawn = "done";
}

/**
 * Draw all pages of a file below one another, each when it is about to be seen.
 * @param {HTMLElement} element With `data-first`, the page that is shown first.
 */
export async function browsePages(element) {
  const url = element.dataset.pdf;
  if (!url || element.dataset.drawn) return;
  element.dataset.drawn = "begun";
  try {
    const { pdfjs, task, file } = await opened(url);
    whenGone(element, () => task.destroy());
    const first = await file.getPage(1);
    const { width, height } = first.getViewport({ scale: 1 });
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting || !(entry.target instanceof HTMLElement)) continue;
        watcher.unobserve(entry.target);
        drawPage(pdfjs, file, entry.target).catch((error) => console.info("A page cannot be drawn.", error));
      }
    }, { rootMargin: "600px 0px" });
    for (let number = 1; number <= file.numPages; number += 1) {
      const place = document.createElement("div");
      place.className = "pdf-page";
      place.id = `page-${number}`;
      place.dataset.page = String(number);
      place.style.aspectRatio = `${width} / ${height}`;
      element.append(place);
      watcher.observe(place);
    }
    tellState(element, []);
    element.dispatchEvent(new CustomEvent("pdf:opened", { bubbles: true, detail: { pages: file.numPages } }));
    const wanted = Number(element.dataset.first);
    if (wanted > 1) element.querySelector(`#page-${wanted}`)?.scrollIntoView();
  } catch (error) {
    console.info("The pages cannot be drawn.", error);
    tellState(element, ["failed"]);
  }
  element.dataset.drawn = "done";
}

/**
 * @param {HTMLElement} element
 * @returns {HTMLElement[]}
 */
function pages(element) {
  return [...element.querySelectorAll("[data-page]")].filter((one) => one instanceof HTMLElement);
}

/**
 * @param {any} pdfjs
 * @param {any} file
 * @param {HTMLElement} place
 * @returns {Promise<"whole" | "part" | "missing">}
 */
async function drawPage(pdfjs, file, place) {
  const page = await file.getPage(Number(place.dataset.page));
  const natural = page.getViewport({ scale: 1 });
  const width = place.clientWidth || 600;
  const ratio = Math.min(globalThis.devicePixelRatio || 1, MOST_PIXEL_RATIO);
  const viewport = page.getViewport({ scale: (width * ratio) / natural.width });
  const canvas = document.createElement("canvas");
  canvas.width = Math.floor(viewport.width);
  canvas.height = Math.floor(viewport.height);
  canvas.setAttribute("aria-hidden", "true");
  const layer = document.createElement("div");
  layer.className = "pdf-text";
  place.style.aspectRatio = `${natural.width} / ${natural.height}`;
  place.replaceChildren(canvas, layer);
  fit(place, natural.width);
  const text = new pdfjs.TextLayer({
    textContentSource: await page.getTextContent(),
    container: layer,
    viewport: natural,
  });
  await text.render();
  let outcome = mark(text.textDivs, place);
  // What was read is not always what the file says: rows of tables, and text that was recognised in a picture.
  if (outcome !== "whole" && markLines(place)) {
    for (const marked of layer.querySelectorAll("mark")) marked.replaceWith(marked.textContent ?? "");
    outcome = "whole";
  }
  await page.render({ canvas, viewport }).promise;
  return outcome;
}

/**
 * Keep the text over the picture, however wide that is.
 * @param {HTMLElement} place
 * @param {number} natural
 */
function fit(place, natural) {
  const set = () => place.style.setProperty("--total-scale-factor", String((place.clientWidth || natural) / natural));
  set();
  new ResizeObserver(set).observe(place);
}

/**
 * @param {HTMLElement[]} pieces
 * @param {HTMLElement} place
 * @returns {"whole" | "part" | "missing"}
 */
function mark(pieces, place) {
  const { quote, before = "", after = "", at } = place.dataset;
  if (!quote) return "whole";
  const texts = pieces.map((piece) => piece.textContent ?? "");
  const { spans, whole } = findQuote(texts, { text: quote, before, after, at: Number(at) });
  for (const { piece, start, end } of spans) {
    const text = texts[piece];
    const marked = document.createElement("mark");
    marked.textContent = text.slice(start, end);
    pieces[piece].replaceChildren(text.slice(0, start), marked, text.slice(end));
  }
  if (!spans.length) return "missing";
  return whole ? "whole" : "part";
}

/**
 * Mark the lines of the quote by where they stand; tells whether that is known.
 * @param {HTMLElement} place
 */
function markLines(place) {
  const boxes = JSON.parse(place.dataset.boxes ?? "[]");
  for (const [left, top, right, bottom] of boxes) {
    const line = document.createElement("mark");
    line.className = "pdf-line";
    line.setAttribute("aria-hidden", "true");
    line.style.left = `${100 * left}%`;
    line.style.top = `${100 * top}%`;
    line.style.width = `${100 * (right - left)}%`;
    line.style.height = `${100 * (bottom - top)}%`;
    place.append(line);
  }
  return boxes.length > 0;
}

/**
 * Tell how it went: the worst of what happened to the pages.
 * @param {HTMLElement} element
 * @param {string[]} outcomes
 */
function tellState(element, outcomes) {
  let state = "whole";
  if (outcomes.includes("failed")) state = "failed";
  else if (outcomes.length && outcomes.every((one) => one === "missing")) state = "missing";
  else if (outcomes.some((one) => one !== "whole")) state = "part";
  for (const told of element.querySelectorAll("[data-state]")) {
    if (told instanceof HTMLElement) told.hidden = told.dataset.state !== state;
  }
  element.dataset.outcome = state;
}

/**
 * Scroll what surrounds a mark so that it is seen, and nothing else of the page.
 * @param {HTMLElement} element
 */
export function toMark(element) {
  const marked = element.querySelector("mark");
  const body = element.closest(".source-body");
  if (!(marked instanceof HTMLElement) || !(body instanceof HTMLElement)) return;
  const from = marked.getBoundingClientRect().top - body.getBoundingClientRect().top + body.scrollTop;
  body.scrollTop = Math.max(0, from - body.clientHeight / 3);
}

/**
 * Do something when an element has left the page.
 * @param {Element} element
 * @param {() => void} action
 */
function whenGone(element, action) {
  const watcher = new MutationObserver(() => {
    if (element.isConnected) return;
    watcher.disconnect();
    action();
  });
  watcher.observe(document.body, { childList: true, subtree: true });
}
