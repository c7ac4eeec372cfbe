// @ts-check
// Finds a quote among the pieces of text that a page of a PDF is drawn from. Those who read a file and those who draw it
// do not agree on white space, hyphens at the ends of lines, ligatures, accents and the order of marks: letters and
// digits alone are compared, in Unicode's decomposed form and without case.

const COMPARED = /[\p{L}\p{N}]/u;
/** Parts of a quote that are found by themselves have so many letters and digits at least. */
const LEAST = 12;

/**
 * Characters that are compared, and where each of them stands.
 * @typedef {{characters: string[], pieces: number[], offsets: number[]}} Normalised
 * @typedef {{piece: number, start: number, end: number}} Span Of one piece: from `start` to just before `end`.
 * @typedef {{text: string, before: string, after: string, at: number}} Quote
 */

/**
 * @param {string[]} pieces
 * @returns {Normalised}
 */
export function normalised(pieces) {
  /** @type {Normalised} */
  const found = { characters: [], pieces: [], offsets: [] };
  pieces.forEach((text, piece) => {
    let offset = 0;
    for (const point of text) {
      for (const character of point.normalize("NFKD").toLowerCase()) {
        if (!COMPARED.test(character)) continue;
        found.characters.push(character);
        found.pieces.push(piece);
        found.offsets.push(offset);
      }
      offset += point.length;
    }
  });
  return found;
}

/**
 * Where a quote stands in pieces of text, and whether that is all of it.
 * @param {string[]} pieces
 * @param {Quote} quote
 * @returns {{spans: Span[], whole: boolean}}
 */
export function findQuote(pieces, quote) {
  const page = normalised(pieces);
  const text = page.characters.join("");
  const whole = best(text, quote);
  if (whole !== null) return { spans: spansOf(page, pieces, [whole]), whole: true };
  const parts = quote.text
    .split(/[\n\r]+|(?<=[.!?;:])\s+/u)
    .filter((part) => letters(part).length >= LEAST)
    .map((part) => best(text, { text: part, before: "", after: "", at: quote.at }))
    .filter((range) => range !== null);
  return { spans: spansOf(page, pieces, parts), whole: false };
}

/** @param {string} text */
function letters(text) {
  return normalised([text]).characters.join("");
}

/**
 * Of all places that say the same, the one with the most of what stands beside the quote, then the nearest.
 * @param {string} text
 * @param {Quote} quote
 * @returns {[number, number] | null}
 */
function best(text, quote) {
  const wanted = letters(quote.text);
  if (!wanted) return null;
  const before = letters(quote.before);
  const after = letters(quote.after);
  /** @type {[number, number] | null} */
  let chosen = null;
  let most = -Infinity;
  for (let start = text.indexOf(wanted); start >= 0; start = text.indexOf(wanted, start + 1)) {
    const end = start + wanted.length;
    const beside = alike(before.length, (back) => before[before.length - 1 - back] === text[start - 1 - back])
      + alike(after.length, (on) => after[on] === text[end + on]);
    const worth = beside - Math.abs(start / Math.max(1, text.length) - quote.at);
    if (worth > most) [chosen, most] = [[start, end], worth];
  }
  return chosen;
}

/**
 * @param {number} most
 * @param {(index: number) => boolean} isSame
 */
function alike(most, isSame) {
  let count = 0;
  while (count < most && isSame(count)) count += 1;
  return count;
}

/**
 * Ranges of compared characters as spans of the pieces, one a piece and range: what stands between two characters of one
 * piece, such as a space, is part of it.
 * @param {Normalised} page
 * @param {string[]} pieces
 * @param {[number, number][]} ranges
 * @returns {Span[]}
 */
function spansOf(page, pieces, ranges) {
  /** @type {Map<number, Span>} */
  const spans = new Map();
  for (const [first, last] of ranges) {
    for (let index = first; index < last; index += 1) {
      const piece = page.pieces[index];
      const start = page.offsets[index];
      const end = start + String.fromCodePoint(pieces[piece].codePointAt(start) ?? 0).length;
      const span = spans.get(piece);
      if (span) {
        span.start = Math.min(span.start, start);
        span.end = Math.max(span.end, end);
      } else spans.set(piece, { piece, start, end });
    }
  }
  const sorted = [...spans.values()].sort((one, other) => one.piece - other.piece);
  for (const span of sorted) span.end += punctuation(pieces[span.piece].slice(span.end));
  return sorted;
}

/**
 * How many marks of punctuation a text begins with: a full stop or a hyphen belongs to what stands before it.
 * @param {string} text
 */
function punctuation(text) {
  return /^[\p{Pd}\p{Pe}\p{Pf}\p{Po}]*/u.exec(text)?.[0].length ?? 0;
}
