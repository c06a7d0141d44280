// What a filter makes the server read, told before it is asked: the server's own rules (region.rs of the protocol
// crate).
//
// The conditions on both keys describe rectangles in the plane that they span; `and` intersects, `or` unites, and a
// condition on any other property is the whole plane. The dearest rectangle names the plan.
// Promises: the same name as the server's for every filter. Work is bounded.

const PRODUCTS_MAX = 16_384;
const DEPTH_MAX = 32;

/** The kinds of plan, best first, each with what it reads. */
export const PLANS = [
  { kind: "point", tone: "good", reads: "reads exactly the entities that it names" },
  { kind: "row range", tone: "good", reads: "reads a range of rows in one partition" },
  { kind: "partition scan", tone: "fair", reads: "reads one whole partition" },
  { kind: "partition range", tone: "poor", reads: "reads several whole partitions" },
  { kind: "table scan", tone: "bad", reads: "reads every entity of the table" },
];
const RANK = Object.fromEntries(PLANS.map(({ kind }, rank) => [kind, rank]));

export function planNamed(kind) {
  return PLANS[RANK[kind]] ?? { kind, tone: "fair", reads: "" };
}

// A cut is a position between strings: [text, 0] before it, [text, 1] after it, and END. Strings of JavaScript
// compare by UTF-16 code unit, which is the service's order.
const START = ["", 0];
const END = null;
const EVERYTHING = { low: START, high: END };

function compareCuts(a, b) {
  if (a === END || b === END) return a === b ? 0 : a === END ? 1 : -1;
  if (a[0] !== b[0]) return a[0] < b[0] ? -1 : 1;
  return a[1] - b[1];
}

function interval(low, high) {
  return compareCuts(low, high) < 0 ? [{ low, high }] : [];
}

const NEGATED = { eq: "ne", ne: "eq", lt: "ge", ge: "lt", gt: "le", le: "gt" };

function intervalsOf(op, text, negated) {
  const before = [text, 0];
  const after = [text, 1];
  switch (negated ? NEGATED[op] : op) {
    case "eq":
      return interval(before, after);
    case "ne":
      return [...interval(START, before), ...interval(after, END)];
    case "lt":
      return interval(START, before);
    case "ge":
      return interval(before, END);
    case "gt":
      return interval(after, END);
    default:
      return interval(START, after);
  }
}

const isAll = ({ low, high }) => high === END && compareCuts(low, START) === 0;
const single = ({ low, high }) =>
  high !== END && low[0] === high[0] && low[1] === 0 && high[1] === 1 ? low : undefined;

function meet(a, b) {
  const low = compareCuts(a.low, b.low) < 0 ? b.low : a.low;
  const high = compareCuts(a.high, b.high) > 0 ? b.high : a.high;
  return interval(low, high)[0];
}

function meetRectangles(a, b) {
  const partition = meet(a.partition, b.partition);
  const row = meet(a.row, b.row);
  return partition && row ? [{ partition, row }] : [];
}

const WHOLE = { partition: EVERYTHING, row: EVERYTHING };
const isWhole = ({ partition, row }) => isAll(partition) && isAll(row);

function kindOf({ partition, row }) {
  if (single(partition)) return single(row) ? "point" : isAll(row) ? "partition scan" : "row range";
  return isAll(partition) ? "table scan" : "partition range";
}

function dearest(rectangles) {
  return rectangles.map(kindOf).reduce((worst, kind) => (RANK[kind] > RANK[worst] ? kind : worst), "point");
}

function stripped(term, negated) {
  while (term.is === "not") [term, negated] = [term.term, !negated];
  return [term, negated];
}

/** Whether the term is a list, read with its negation: `not (a or b)` is `not a and not b`. */
function word(term, negated) {
  if (term.is !== "and" && term.is !== "or") return undefined;
  return (term.is === "and") !== negated ? "and" : "or";
}

function flattened(list, negated, wanted) {
  const terms = [];
  const open = [[list, negated]];
  while (open.length > 0) {
    const [term, isNegated] = stripped(...open.pop());
    if (word(term, isNegated) === wanted) open.push(...term.terms.map((one) => [one, isNegated]).reverse());
    else terms.push([term, isNegated]);
  }
  return terms;
}

class Planner {
  productsLeft = PRODUCTS_MAX;

  /** The rectangles outside of which the term is false. */
  region(given, givenNegated, depth) {
    const [term, negated] = stripped(given, givenNegated);
    const wanted = word(term, negated);
    if (wanted) {
      if (depth === DEPTH_MAX) return [WHOLE];
      const regions = flattened(term, negated, wanted).map(([one, not]) => this.region(one, not, depth + 1));
      return wanted === "and" ? this.intersection(regions) : union(regions);
    }
    if (term.is === "constant") return term.value !== negated ? [WHOLE] : [];
    if (term.is === "compare" && term.literal.type === "String") {
      const { property, op, literal } = term;
      const intervals = () => intervalsOf(op, literal.text, negated);
      if (property === "PartitionKey") return intervals().map((partition) => ({ partition, row: EVERYTHING }));
      if (property === "RowKey") return intervals().map((row) => ({ partition: EVERYTHING, row }));
    }
    return neverTrue(term, negated) ? [] : [WHOLE];
  }

  intersection(regions) {
    let rectangles = [WHOLE];
    for (const region of [...regions].sort((a, b) => a.length - b.length)) {
      if (this.affords(rectangles.length, region.length)) {
        rectangles = rectangles.flatMap((a) => region.flatMap((b) => meetRectangles(a, b)));
      } else if (RANK[dearest(region)] < RANK[dearest(rectangles)]) {
        rectangles = region;
      }
    }
    return rectangles;
  }

  affords(left, right) {
    if (left <= 1 || right <= 1) return true;
    const products = left * right;
    if (products > this.productsLeft) return false;
    this.productsLeft -= products;
    return true;
  }
}

/** No property has the type Single or Decimal, and every value counts as less than such a literal. */
function neverTrue(term, negated) {
  return !negated && term.is === "compare" && term.literal.type === "Foreign" && ["eq", "gt", "ge"].includes(term.op);
}

function union(regions) {
  return regions.some((region) => region.some(isWhole)) ? [WHOLE] : regions.flat();
}

/** Whether every key is in one of the rectangles, counting one of several partitions as all rows of these. */
function coverEverything(rectangles) {
  const stretches = rectangles.map(({ partition, row }) => {
    const one = single(partition);
    const start = one ? [one, row.low] : [partition.low, START];
    const end = one && row.high !== END ? [one, row.high] : [partition.high, START];
    return { start, end };
  });
  const compare = (a, b) => compareCuts(a[0], b[0]) || compareCuts(a[1], b[1]);
  stretches.sort((a, b) => compare(a.start, b.start));
  let reached = [START, START];
  for (const { start, end } of stretches) {
    if (compare(start, reached) > 0) return false;
    if (compare(end, reached) > 0) reached = end;
  }
  return reached[0] === END;
}

/**
 * The plan of a parsed filter (undefined: no filter): its kind, whether nothing can match, and the partitions that it
 * names.
 */
export function plan(root) {
  if (!root) return { ...planNamed("table scan"), ranges: 1, partitions: [] };
  const rectangles = new Planner().region(root, false, 0);
  const kind = coverEverything(rectangles) ? "table scan" : dearest(rectangles);
  const partitions = [...new Set(rectangles.map(({ partition }) => single(partition)?.[0]))];
  return {
    ...planNamed(kind),
    ranges: rectangles.length,
    isEmpty: rectangles.length === 0,
    partitions: partitions.includes(undefined) ? [] : partitions,
  };
}

/** The plan in a sentence, before the query runs. */
export function sentence({ kind, isEmpty, ranges, partitions }) {
  if (isEmpty) return "nothing can match, so nothing is read";
  const where = partitions.length === 1 ? ` (partition '${shorten(partitions[0])}')` : "";
  if (kind === "point" && ranges > 1) return `reads exactly the ${ranges} entities that it names`;
  if (kind === "row range" && ranges > 1) return `reads ${ranges} ranges of rows${where}`;
  if (kind === "partition scan" && partitions.length > 1) return `reads ${partitions.length} whole partitions`;
  return planNamed(kind).reads + where;
}

function shorten(text) {
  return text.length > 24 ? `${text.slice(0, 23)}…` : text;
}
