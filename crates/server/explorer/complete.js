// What may come next in a filter: names of properties, operators, values of the right type.
//
// Promises: suggestions are for the word at the cursor and replace only it. At most a dozen.

import { tokens } from "./filter.js";

const SUGGESTIONS_MAX = 12;
const OPERATORS = [
  ["eq", "equal"],
  ["ne", "not equal"],
  ["gt", "greater than"],
  ["ge", "greater or equal"],
  ["lt", "less than"],
  ["le", "less or equal"],
];
const KEYWORDS = new Set(["and", "or", "not", ...OPERATORS.map(([word]) => word)]);
const EXAMPLES = {
  String: [["''", "text in quotes"]],
  Int32: [["0", "whole number"]],
  Int64: [["0L", "whole number with L"]],
  Double: [
    ["0.0", "with a point"],
    ["NaN", "not a number"],
    ["INF", "infinity"],
  ],
  Boolean: [
    ["true", ""],
    ["false", ""],
  ],
  DateTime: [["datetime'2026-01-01T00:00:00Z'", "UTC"]],
  Guid: [["guid'00000000-0000-0000-0000-000000000000'", ""]],
  Binary: [["X'00'", "hexadecimal"]],
};

/**
 * The suggestions for a text with the cursor at `at`. `columns` is a Map from the names that are known to their types,
 * and `samples` one from names to values that occur, as literals.
 * Returns {start, end, items: [{text, note, kind}]}: what to replace, and with what.
 */
export function complete(text, at, columns, samples = new Map()) {
  const before = tokens(text.slice(0, at));
  const last = before.at(-1);
  const touches = last && last.end === at && !/\s$/.test(text.slice(0, at));
  if (touches && !["word", "open"].includes(last.kind)) return { start: at, end: at, items: [] };
  const word = touches && last.kind === "word" ? last.text : "";
  const start = at - word.length;
  const previous = word ? before.at(-2) : last;
  const wordAfter = /^[\p{L}\p{N}_$]*/u.exec(text.slice(at))[0];
  const candidates =
    word && KEYWORDS.has(word)
      ? []
      : expected(before, word ? before.length - 1 : before.length, previous, columns, samples);
  const lower = word.toLowerCase();
  const matching = candidates.filter((one) => one.text.toLowerCase().includes(lower) && one.text !== word);
  matching.sort((a, b) => b.text.toLowerCase().startsWith(lower) - a.text.toLowerCase().startsWith(lower));
  return { start, end: at + wordAfter.length, items: matching.slice(0, SUGGESTIONS_MAX) };
}

function isOperator(token) {
  return token?.kind === "word" && OPERATORS.some(([word]) => word === token.text);
}

function expected(list, count, previous, columns, samples) {
  const names = () => [
    ...[...columns].map(([name, types]) => ({ text: name, note: [...types].join(", "), kind: "property" })),
    { text: "not", note: "negation", kind: "word" },
  ];
  if (!previous || previous.kind === "open" || ["and", "or", "not"].includes(previous.text)) return names();
  if (isOperator(previous)) {
    const property = list[count - 2];
    const types =
      property?.kind === "word" ? (columns.get(property.text) ?? Object.keys(EXAMPLES)) : Object.keys(EXAMPLES);
    const forms = [...types].flatMap((type) => EXAMPLES[type] ?? []);
    const seen = [...(samples.get(property?.text) ?? [])].filter((text) => forms.every(([form]) => form !== text));
    return [
      ...forms.map(([text, note]) => ({ text, note, kind: "value" })),
      ...seen.map((text) => ({ text, note: "occurs", kind: "sample" })),
    ];
  }
  const beforeThat = list[count - 2];
  const isOperand = previous.kind === "word" && !KEYWORDS.has(previous.text) && !isOperator(beforeThat);
  const joins = ["and", "or"].map((text) => ({ text, note: "", kind: "word" }));
  if (!isOperand) return joins;
  return [...OPERATORS.map(([text, note]) => ({ text, note, kind: "operator" })), ...joins];
}
