// JSON without loss: numbers keep their text, so that `1.0` stays a Double and no digit is dropped.
//
// Promises: every value of a payload comes back as it was written. Text that is not JSON is an error, never a guess.
// Leaves to others: what the members mean (types.js).

const NESTING_DEPTH_MAX = 64;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const SPACE = /[ \t\r\n]*/y;

/** A number as it was written. */
export class NumberText {
  constructor(text) {
    this.text = text;
  }
}

/** Reads JSON. Objects become Maps, so that no member name can reach a prototype; numbers become NumberText. */
export function readJson(text) {
  let at = 0;

  function fail(wanted) {
    throw new SyntaxError(`not JSON: ${wanted} expected at ${at}`);
  }
  function skip() {
    SPACE.lastIndex = at;
    SPACE.test(text);
    at = SPACE.lastIndex;
  }
  function take(character) {
    skip();
    if (text[at] !== character) return false;
    at += 1;
    return true;
  }
  function string() {
    const start = at;
    let end = start;
    let escaped = false;
    for (;;) {
      end = text.indexOf('"', end + 1);
      if (end < 0) fail("the end of a string");
      let slashes = 0;
      while (text.charCodeAt(end - 1 - slashes) === 92) slashes += 1;
      if (slashes > 0) escaped = true;
      if (slashes % 2 === 0) break;
    }
    at = end + 1;
    const inside = text.slice(start + 1, end);
    return escaped || inside.includes("\\") ? JSON.parse(text.slice(start, at)) : inside;
  }
  function value(depth) {
    if (depth > NESTING_DEPTH_MAX) fail("less nesting");
    skip();
    switch (text[at]) {
      case "{": {
        at += 1;
        const members = new Map();
        if (take("}")) return members;
        do {
          skip();
          if (text[at] !== '"') fail("a name");
          const name = string();
          if (!take(":")) fail("':'");
          members.set(name, value(depth + 1));
        } while (take(","));
        if (!take("}")) fail("'}'");
        return members;
      }
      case "[": {
        at += 1;
        const items = [];
        if (take("]")) return items;
        do items.push(value(depth + 1));
        while (take(","));
        if (!take("]")) fail("']'");
        return items;
      }
      case '"':
        return string();
      default: {
        for (const [word, meaning] of [
          ["true", true],
          ["false", false],
          ["null", null],
        ]) {
          if (text.startsWith(word, at)) {
            at += word.length;
            return meaning;
          }
        }
        NUMBER.lastIndex = at;
        const found = NUMBER.exec(text);
        if (!found) fail("a value");
        at = NUMBER.lastIndex;
        return new NumberText(found[0]);
      }
    }
  }

  const result = value(0);
  skip();
  if (at !== text.length) fail("the end");
  return result;
}
