// @ts-check
// On pages of other sites: a button, and behind it a frame of the server that this script came from.
(() => {
  const script = document.currentScript;
  if (!(script instanceof HTMLScriptElement)) return;
  const key = script.dataset.key ?? "";
  const parts = /^rk_([1-9][0-9]*)_([0-9A-Za-z]{14})_/.exec(key);
  if (!parts) {
    console.error("recollect: the script needs data-key with a key of a widget.");
    return;
  }
  const from = new URL(script.src);
  const theme = ["light", "dark"].includes(script.dataset.theme ?? "") ? script.dataset.theme : "auto";
  const address = new URL(`widget/${parts[1]}/${parts[2]}?theme=${theme}`, from);
  const label = script.dataset.label || "Ask a question";

  // A shadow tree: the page's styles do not reach it, nor its own the page. What is asked and said is in the frame, which
  // is of another origin, so that no script of the page reads it.
  const host = document.createElement("div");
  const shadow = host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(`
    :host { all: initial; }
    button, iframe { position: fixed; right: 1rem; z-index: 2147483000; box-sizing: border-box; }
    button { bottom: 1rem; font: 600 15px/1 system-ui, sans-serif; color: #fff; background: #0c5f59; border: 0; border-radius: 2rem; padding: 0.9rem 1.2rem; cursor: pointer; box-shadow: 0 4px 16px rgb(0 0 0 / 25%); }
    button:hover { background: #0a4c47; }
    button:focus-visible { outline: 3px solid #0c5f59; outline-offset: 3px; }
    iframe { bottom: 4.5rem; width: min(26rem, calc(100vw - 2rem)); height: min(36rem, calc(100vh - 6rem)); border: 1px solid #8a857b; border-radius: 0.75rem; background: Canvas; box-shadow: 0 8px 32px rgb(0 0 0 / 30%); }
    iframe[hidden] { display: none; }
  `);
  shadow.adoptedStyleSheets = [style];
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.setAttribute("aria-expanded", "false");
  shadow.append(button);

  /** @type {HTMLIFrameElement | undefined} */
  let frame;
  /** @param {boolean} open */
  const show = (open) => {
    if (open && !frame) {
      frame = document.createElement("iframe");
      frame.title = label;
      frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox");
      frame.src = address.href;
      shadow.append(frame);
    }
    if (frame) frame.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open) frame?.focus();
    else button.focus();
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") !== "true"));
  addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow || event.origin !== from.origin) return;
    if (event.data === "recollect:ready") frame.contentWindow?.postMessage({ recollect: key }, from.origin);
    if (event.data === "recollect:close") show(false);
  });
  const place = () => document.body.append(host);
  if (document.body) place();
  else addEventListener("DOMContentLoaded", place);
})();
