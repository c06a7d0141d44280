// The little XML that the services speak: elements, attributes and text, read without the browser's parser, since whatever
// parses markup is a place where stored data could become script.
//
// Promises: text comes back unescaped and otherwise unchanged. Document types and unknown references are refused.

const REFERENCES = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
const TAG = /<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>/y;
const ATTRIBUTE = /([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

function unescape(text) {
  return text.replace(/&(#x[0-9a-fA-F]+|#[0-9]+|[a-z]+);/g, (whole, name) => {
    if (name.startsWith("#x")) return String.fromCodePoint(parseInt(name.slice(2), 16));
    if (name.startsWith("#")) return String.fromCodePoint(parseInt(name.slice(1), 10));
    if (!Object.hasOwn(REFERENCES, name)) throw new SyntaxError(`not XML: unknown reference ${whole}`);
    return REFERENCES[name];
  });
}

/** An element: its name, its attributes, its text, its elements. */
class Element {
  constructor(name, attributes = "") {
    this.name = name;
    const found = [...attributes.matchAll(ATTRIBUTE)];
    this.attributes = Object.fromEntries(found.map(([, key, double, single]) => [key, unescape(double ?? single)]));
    this.text = "";
    this.children = [];
  }
  all(name) {
    return this.children.filter((child) => child.name === name);
  }
  one(name) {
    return this.children.find((child) => child.name === name);
  }
  textOf(name) {
    return this.one(name)?.text ?? "";
  }
}

export function readXml(source) {
  // A byte-order mark and the declaration say nothing that matters here.
  let text = source.charCodeAt(0) === 0xfeff ? source.slice(1) : source;
  text = text.replace(/^\s*<\?xml[^>]*\?>\s*/, "");
  const top = new Element("");
  const open = [top];
  let at = 0;
  while (at < text.length) {
    const here = open[open.length - 1];
    if (text.startsWith("<![CDATA[", at)) {
      const end = text.indexOf("]]>", at);
      if (end < 0) throw new SyntaxError("not XML: CDATA without an end");
      here.text += text.slice(at + 9, end);
      at = end + 3;
      continue;
    }
    if (text[at] !== "<") {
      const end = text.indexOf("<", at);
      const stop = end < 0 ? text.length : end;
      here.text += unescape(text.slice(at, stop));
      at = stop;
      continue;
    }
    TAG.lastIndex = at;
    const tag = TAG.exec(text);
    if (!tag) throw new SyntaxError(`not XML: a tag expected at ${at}`);
    at = TAG.lastIndex;
    const [, closes, name, attributes, empty] = tag;
    if (closes) {
      if (open.length < 2 || here.name !== name) throw new SyntaxError(`not XML: unexpected </${name}>`);
      open.pop();
    } else {
      const element = new Element(name, attributes);
      here.children.push(element);
      if (!empty) open.push(element);
    }
  }
  if (open.length !== 1 || top.children.length !== 1) throw new SyntaxError("not XML: one element expected");
  return top.children[0];
}

export function escapeXml(text) {
  return text.replace(/[&<>\r]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;" })[one]);
}
