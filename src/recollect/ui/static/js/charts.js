// @ts-check
// Charts are drawn from the tables beside them, so that both hold the same numbers.

import uPlot from "../vendor/uplot/uPlot.esm.js";

const HEIGHT = 220;
const COLOURS = ["--accent", "--bad", "--warn", "--ink-soft", "--good", "--line-strong"];
/** @type {number[][]} */
const DASHES = [[], [6, 3], [2, 3], [10, 3, 2, 3], [12, 4], [1, 2]];

/** @type {WeakMap<Element, {plot: any, observer: ResizeObserver}>} */
const drawn = new WeakMap();

/**
 * Draw each chart below an element; what was drawn before is drawn anew.
 * @param {ParentNode} root
 */
export function drawCharts(root) {
  for (const figure of root.querySelectorAll("figure[data-chart]")) {
    if (figure instanceof HTMLElement) draw(figure);
  }
}

/**
 * The numbers of a chart's table.
 * @param {HTMLElement} figure
 */
export function readTable(figure) {
  const rows = [...figure.querySelectorAll("tbody tr")];
  const names = [...figure.querySelectorAll("thead th[data-name]")].map((cell) => cell.getAttribute("data-name") ?? "");
  const labels = rows.map((row) => row.querySelector("th")?.textContent?.trim() ?? "");
  const xs = rows.map((row) => Number(row.querySelector("th")?.getAttribute("data-value")));
  const values = names.map((_, place) =>
    rows.map((row) => {
      const given = row.querySelectorAll("td")[place]?.getAttribute("data-value");
      return given === null || given === undefined ? null : Number(given);
    }),
  );
  return { names, labels, xs, values };
}

/** @param {HTMLElement} figure */
function draw(figure) {
  const place = figure.querySelector(".plot");
  if (!(place instanceof HTMLElement)) return;
  const before = drawn.get(figure);
  if (before) {
    before.observer.disconnect();
    before.plot.destroy();
  }
  place.replaceChildren();
  const table = readTable(figure);
  if (!table.xs.length) return;
  const plot = new uPlot(options(figure, table, place.clientWidth), [table.xs, ...table.values], place);
  place.append(legend(table.names));
  const observer = new ResizeObserver(() => {
    if (place.clientWidth && place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  });
  observer.observe(place);
  drawn.set(figure, { plot, observer });
  figure.dataset.drawn = String(table.names.length);
}

/**
 * @param {HTMLElement} figure
 * @param {ReturnType<typeof readTable>} table
 * @param {number} width
 */
function options(figure, table, width) {
  const { chart, x, xLabel, unit } = figure.dataset;
  const style = getComputedStyle(figure);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--ink-soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui", labelFont: "12px system-ui", labelSize: 18 };
  const bars = chart === "bars";
  return {
    width: Math.max(width, 160),
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: !bars } },
    scales: { x: { time: x === "time", range: range(table.xs, x, bars) }, y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
    axes: [
      { ...axis, label: xLabel, size: 30, ...ticksOf(x, table) },
      { ...axis, label: unit, size: 56, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(short) },
    ],
    series: [
      {},
      ...table.names.map((name, place) => ({
        label: name,
        stroke: colour(COLOURS[place % COLOURS.length]),
        width: 2,
        dash: bars ? [] : DASHES[place % DASHES.length],
        ...(bars
          ? { fill: `${colour(COLOURS[place % COLOURS.length])}66`, paths: uPlot.paths.bars({ size: [table.names.length > 1 ? 0.38 : 0.7, 48, 2], align: table.names.length > 1 ? (place ? 1 : -1) : 0 }), points: { show: false } }
          : { spanGaps: false, points: { size: 5, show: table.values[place].filter((value) => value !== null).length <= 60 } }),
      })),
    ],
  };
}

/**
 * What stands at the lower axis.
 * @param {string | undefined} kind
 * @param {ReturnType<typeof readTable>} table
 */
function ticksOf(kind, table) {
  if (kind === "time") return { values: times };
  if (kind === "number") return { incrs: [1, 2, 5, 10, 20, 50, 100], values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(short) };
  const crowded = table.labels.length > 5;
  const every = Math.ceil(table.labels.length / 15);
  const some = (/** @type {any[]} */ list) => list.filter((_, place) => place % every === 0);
  return { splits: () => some(table.xs), values: () => some(table.labels), ...(crowded ? { rotate: -45, size: 64 } : {}) };
}

/**
 * Room beside the first and the last bar.
 * @param {number[]} xs
 * @param {string | undefined} kind
 * @param {boolean} bars
 */
function range(xs, kind, bars) {
  const step = xs.length > 1 ? xs[1] - xs[0] : kind === "time" ? 3600 : kind === "day" ? 86400 : 1;
  const room = bars ? step * 0.6 : xs.length > 1 ? 0 : step;
  return [xs[0] - room, xs[xs.length - 1] + room];
}

/**
 * @param {any} plot
 * @param {number[]} ticks
 */
function times(plot, ticks) {
  const days = plot.scales.x.max - plot.scales.x.min > 2 * 86400;
  const form = new Intl.DateTimeFormat(document.documentElement.lang, days ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" });
  return ticks.map((tick) => form.format(new Date(tick * 1000)));
}

/** @param {number} value */
function short(value) {
  return new Intl.NumberFormat(document.documentElement.lang, { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}

/** @param {string[]} names */
function legend(names) {
  const list = document.createElement("ul");
  list.className = "legend";
  names.forEach((name, place) => {
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.backgroundColor = `var(${COLOURS[place % COLOURS.length]})`;
    item.append(swatch, name);
    list.append(item);
  });
  return list;
}

/** Draw the charts of a page, again where a part of it or its colours have changed. */
export function followCharts() {
  drawCharts(document);
  document.addEventListener("htmx:load", (event) => {
    if (event.target instanceof Element) drawCharts(event.target);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCharts(document));
}
