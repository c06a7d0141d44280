// The language of filters: text into a tree, by the rules that the server has, so that the page knows what a filter
// means before it is sent.
//
// Promises: what parses here is what the service accepts; refusals name a position. Leaves to others: what a filter
// reads (plan.js), what could come next (complete.js), and the last word, which is the server's.

const DEPTH_MAX = 200;
const COMPARISONS = { eq: "eq", ne: "ne", gt: "gt", ge: "ge", lt: "lt", le: "le" };
const FLIPPED = { eq: "eq", ne: "ne", gt: "lt", ge: "le", lt: "gt", le: "ge" };
const DECLARED = { PartitionKey: "String", RowKey: "String", Timestamp: "DateTime" };

const TOKENS = [
  ["space", /\s+/y],
  ["string", /'(?:[^']|'')*'/y],
  ["typed", /(?:datetimeoffset|datetime|guid|binary|[Xx])'[^']*'/y],
  ["number", /-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[LlDdFfMm]?|-INF(?![\p{L}\p{N}_])/uy],
  ["word", /[\p{L}_$][\p{L}\p{N}\p{M}\p{Pc}\p{Cf}_$]*/uy],
  ["open", /\(/y],
  ["close", /\)/y],
];

export class FilterError extends Error {
  constructor(message, at) {
    super(message);
    this.at = at;
  }
}

/** The tokens of a text, each with kind, text, start and end. The last may be an `error`. */
export function tokens(text) {
  const found = [];
  let at = 0;
  next: while (at < text.length) {
    for (const [kind, pattern] of TOKENS) {
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      if (!match) continue;
      const end = pattern.lastIndex;
      if (kind !== "space") found.push({ kind, text: match[0], start: at, end });
      at = end;
      continue next;
    }
    const isString = /^(?:(?:datetimeoffset|datetime|guid|binary|[Xx])?')/.test(text.slice(at));
    found.push({ kind: isString ? "unterminated" : "error", text: text.slice(at), start: at, end: text.length });
    break;
  }
  return found;
}

/** The literal that a token is: {type, text}, or undefined. */
function literalOf({ kind, text, start }) {
  const bad = (type) => {
    throw new FilterError(`${text} is no ${type}.`, start);
  };
  switch (kind) {
    case "string":
      return { type: "String", text: text.slice(1, -1).replaceAll("''", "'") };
    case "typed": {
      const inside = text.slice(text.indexOf("'") + 1, -1);
      if (text.startsWith("guid")) {
        return /^[{(]?[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}[})]?$/.test(inside)
          ? { type: "Guid", text: inside }
          : bad("Guid");
      }
      if (text.startsWith("datetime")) {
        return /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:\d\d)?$/.test(inside)
          ? { type: "DateTime", text: inside }
          : bad("DateTime");
      }
      return /^([0-9a-fA-F]{2})*$/.test(inside) ? { type: "Binary", text: inside } : bad("Binary: hexadecimal digits");
    }
    case "number": {
      const digits = text.replace(/[LlDdFfMm]$/, "");
      if (/[Ll]$/.test(text)) {
        const value = /^-?\d+$/.test(digits) ? BigInt(digits) : bad("Int64");
        return BigInt.asIntN(64, value) === value ? { type: "Int64", text: digits } : bad("Int64");
      }
      if (/[FfMm]$/.test(text)) return { type: "Foreign", text };
      if (/[.eE]|[Dd]$|INF/.test(text)) return { type: "Double", text: digits };
      const value = BigInt(digits);
      if (BigInt.asIntN(32, value) !== value) {
        throw new FilterError(`${text} is too large for an Int32; write ${text}L.`, start);
      }
      return { type: "Int32", text: digits };
    }
    case "word":
      if (text === "true" || text === "false") return { type: "Boolean", text };
      if (text === "NaN" || text === "INF") return { type: "Double", text };
      return undefined;
    default:
      return undefined;
  }
}

/**
 * Parses a filter. The tree has nodes {is: "and"|"or", terms}, {is: "not", term},
 * {is: "compare", property, op, literal},
 * {is: "flag", property} and {is: "constant", value}. Empty text is undefined: no filter.
 */
export function parse(text) {
  const list = tokens(text);
  if (list.length === 0) return undefined;
  let at = 0;
  const peek = () => list[at] ?? { kind: "end", text: "", start: text.length, end: text.length };
  const isWord = (word) => peek().kind === "word" && peek().text === word;

  function list_of(word, part, depth) {
    const terms = [condition(part(depth))];
    while (isWord(word)) {
      at += 1;
      terms.push(condition(part(depth)));
    }
    return terms.length === 1 ? terms[0] : { is: word, terms };
  }
  const either = (depth) => list_of("or", both, depth);
  const both = (depth) => list_of("and", unary, depth);
  function unary(depth) {
    if (depth > DEPTH_MAX) throw new FilterError("This is nested too deeply.", peek().start);
    if (!isWord("not")) return comparison(depth);
    at += 1;
    return { is: "not", term: condition(unary(depth + 1)) };
  }
  function comparison(depth) {
    const left = operand(depth);
    const token = peek();
    const op = token.kind === "word" ? COMPARISONS[token.text] : undefined;
    if (!op) return left;
    at += 1;
    const right = operand(depth);
    if (left.is === "property" && right.is === "literal") return compare(left, op, right, token);
    if (left.is === "literal" && right.is === "property") return compare(right, FLIPPED[op], left, token);
    throw new FilterError("A comparison has a property on one side and a value on the other.", token.start);
  }
  function compare({ name }, op, { value }, token) {
    const declared = DECLARED[name];
    if (declared && declared !== value.type) {
      throw new FilterError(
        `${name} is a ${declared} and cannot be compared with ${article(value.type)}.`,
        token.start,
      );
    }
    return { is: "compare", property: name, op, literal: value };
  }
  function operand(depth) {
    const token = peek();
    if (token.kind === "open") {
      at += 1;
      const inside = either(depth + 1);
      if (peek().kind !== "close") throw new FilterError("A closing parenthesis is missing.", peek().start);
      at += 1;
      return inside;
    }
    if (token.kind === "unterminated") throw new FilterError("The closing quote is missing.", token.start);
    if (token.kind === "error") throw new FilterError(`${token.text[0]} has no meaning here.`, token.start);
    const value = literalOf(token);
    if (value) {
      at += 1;
      return { is: "literal", value, start: token.start };
    }
    if (token.kind === "word" && token.text !== "null") {
      if (COMPARISONS[token.text] || ["and", "or", "not"].includes(token.text)) {
        throw new FilterError("A property or a value is expected.", token.start);
      }
      at += 1;
      if (peek().kind === "open" && peek().start === token.end) {
        throw new FilterError(`The service has no functions, so no ${token.text}().`, token.start);
      }
      return { is: "property", name: token.text, start: token.start };
    }
    throw new FilterError("A property or a value is expected.", token.start);
  }
  function condition(node) {
    if (node.is === "property") {
      if (DECLARED[node.name]) throw new FilterError(`${node.name} alone is no condition.`, node.start);
      return { is: "flag", property: node.name };
    }
    if (node.is === "literal") {
      if (node.value.type !== "Boolean") throw new FilterError("A value alone is no condition.", node.start);
      return { is: "constant", value: node.value.text === "true" };
    }
    return node;
  }

  const root = condition(either(0));
  if (at < list.length) {
    const token = peek();
    const message = token.kind === "close" ? "This parenthesis closes nothing." : `${token.text} is unexpected here.`;
    throw new FilterError(message, token.start);
  }
  return root;
}

function article(type) {
  return type === "Int32" || type === "Int64" ? `an ${type}` : `a ${type}`;
}
