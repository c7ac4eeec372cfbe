// Where, when and by whom: chosen in the composer, kept in the page's address, sent with each question.

/** @param {HTMLFormElement} form */
export function keepSettings(form) {
  const asOf = form.querySelector("#as-of");
  if (asOf instanceof HTMLInputElement && asOf.dataset.moment) {
    const at = new Date(asOf.dataset.moment);
    // What the field shows is the browser's own time.
    const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
    if (!Number.isNaN(at.getTime())) asOf.value = local.toISOString().slice(0, 16);
    // The field knows minutes: until somebody changes it, the moment counts as it was given.
    asOf.dataset.shown = asOf.value;
  }
  const menu = form.querySelector("#settings");
  menu?.addEventListener("change", () => {
    const chosen = settingsOf(form);
    history.replaceState(null, "", `${location.pathname}${address(chosen)}`);
    const summary = menu.querySelector("[data-summary]");
    const everywhere = form.closest(".chat")?.getAttribute("data-said-everywhere") ?? "";
    if (summary) summary.textContent = chosen.getAll("collection").join(", ") || everywhere;
    menu.querySelector("summary .badge")?.remove();
    const asOfNow = chosen.get("as_of");
    if (asOfNow) {
      const badge = document.createElement("span");
      badge.className = "badge accent";
      badge.textContent = asOfNow.slice(0, 10);
      summary?.after(" ", badge);
    }
    const model = form.querySelector("#model");
    if (!(model instanceof HTMLSelectElement)) return;
    const quotes = model.value ? model.value === "extractive" : !model.options[0].hasAttribute("data-writes");
    for (const line of form.querySelectorAll("[data-written]")) {
      line.toggleAttribute("hidden", (line.getAttribute("data-written") === "quotes") !== quotes);
    }
  });
}

/**
 * What is chosen, as the server reads it.
 * @param {HTMLFormElement} form
 */
export function settingsOf(form) {
  const chosen = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (typeof value !== "string" || !value || !["collection", "model", "as_of"].includes(name)) continue;
    chosen.append(name, name === "as_of" ? moment(form, value) : value);
  }
  return chosen;
}

/**
 * @param {HTMLFormElement} form
 * @param {string} local
 */
function moment(form, local) {
  const field = form.querySelector("#as-of");
  const given = field instanceof HTMLInputElement && field.dataset.shown === local ? field.dataset.moment : undefined;
  return given ?? new Date(local).toISOString();
}

/**
 * The query of the page's address: what is chosen, beside what is there.
 * @param {URLSearchParams} chosen
 */
export function address(chosen) {
  const query = new URLSearchParams(location.search);
  for (const name of ["collection", "model", "as_of", "before", "cursor"]) query.delete(name);
  for (const [name, value] of chosen) query.append(name, value);
  return query.size ? `?${query}` : "";
}
