// Moments come in UTC and are shown in the browser's zone.

/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const FORMS = {
  short: { dateStyle: "short", timeStyle: "short" },
  medium: { dateStyle: "medium", timeStyle: "short" },
  long: { dateStyle: "long", timeStyle: "medium" },
};

// The page's language, as the visitor's country writes it: in English the day stands before the month, or behind it.
const page = document.documentElement.lang;
const locale = navigator.languages.find((one) => one.split("-")[0] === page) ?? page;

/**
 * Show each `<time data-form>` below an element in the browser's zone.
 * @param {ParentNode} root
 */
export function localiseMoments(root) {
  for (const element of root.querySelectorAll("time[data-form]")) {
    const at = new Date(element.getAttribute("datetime") ?? "");
    if (Number.isNaN(at.getTime())) continue;
    const form = FORMS[element.getAttribute("data-form") ?? ""] ?? FORMS.medium;
    element.textContent = new Intl.DateTimeFormat(locale, form).format(at);
    element.removeAttribute("data-form");
  }
}
