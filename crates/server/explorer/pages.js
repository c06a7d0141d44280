// The pages of a result: read as far as somebody scrolls, kept within a bound, read again when needed.
//
// A continuation token is all that a page needs to be read again, so tokens are kept and entities are not. Promises:
// at most PAGES_KEPT_MAX pages and about TEXT_KEPT_MAX characters of them are in memory, however long the result is.
// One request at a time. Leaves to others: the request itself, given as `fetchPage(token, signal)`.

export const PAGES_KEPT_MAX = 8;
export const TEXT_KEPT_MAX = 16 * 1024 * 1024;
/** So many pages may be known; at a thousand entities each that is twenty million. */
export const PAGES_KNOWN_MAX = 20_000;

export class Pages {
  #fetchPage;
  #pages = [];
  #next;
  #isAtEnd = false;
  #clock = 0;
  #loading;
  #abort = new AbortController();

  constructor(fetchPage) {
    this.#fetchPage = fetchPage;
  }

  /** How many entities are known so far. */
  get count() {
    const last = this.#pages.at(-1);
    return last ? last.start + last.count : 0;
  }
  /** Whether `count` is all there is. */
  get isComplete() {
    return this.#isAtEnd;
  }
  get isFull() {
    return this.#pages.length >= PAGES_KNOWN_MAX;
  }
  get isLoading() {
    return this.#loading !== undefined;
  }
  /** How many entities are in memory now. */
  get kept() {
    return this.#pages.reduce((sum, page) => sum + (page.entities?.length ?? 0), 0);
  }

  close() {
    this.#abort.abort();
  }

  #indexOf(row) {
    let [low, high] = [0, this.#pages.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const { start, count } = this.#pages[middle];
      if (row < start) high = middle - 1;
      else if (row >= start + count) low = middle + 1;
      else return middle;
    }
    return -1;
  }

  /** The entity of a row, if it is in memory. */
  entity(row) {
    const page = this.#pages[this.#indexOf(row)];
    if (!page?.entities) return undefined;
    page.used = ++this.#clock;
    return page.entities[row - page.start];
  }

  /** Forgets the page of a row, because the row has changed. It is read again when it is needed. */
  forget(row) {
    const page = this.#pages[this.#indexOf(row)];
    if (page) page.entities = undefined;
  }

  /**
   * Reads one page that is missing for these rows. Returns what was read, or undefined if
   * nothing is missing.
   */
  async need(first, last) {
    if (this.#loading) return this.#loading;
    const missing = this.#missing(first, last);
    if (missing === undefined) return undefined;
    this.#loading = this.#load(missing).finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  #missing(first, last) {
    const found = this.#indexOf(first);
    for (let index = found < 0 ? this.#pages.length - 1 : found; index in this.#pages; index += 1) {
      const page = this.#pages[index];
      if (page.start > last) return undefined;
      if (!page.entities && page.count > 0) return index;
    }
    return !this.#isAtEnd && !this.isFull && last >= this.count ? this.#pages.length : undefined;
  }

  async #load(index) {
    const known = this.#pages[index];
    const token = known ? known.token : this.#next;
    const answer = await this.#fetchPage(token, this.#abort.signal);
    const before = this.#pages[index - 1];
    const start = before ? before.start + before.count : 0;
    const { entities, next, size } = answer;
    const following = this.#pages[index + 1];
    const isAsBefore =
      known && known.count === entities.length && sameToken(next, following ? following.token : this.#next);
    this.#pages[index] = { start, count: entities.length, token, entities, size, used: ++this.#clock };
    if (!isAsBefore) {
      // Somebody changed the table, or this page is new: what follows is found again by scrolling.
      this.#pages.length = index + 1;
      this.#next = next;
      this.#isAtEnd = next === undefined;
    }
    this.#forget(index);
    return { ...answer, isAgain: known !== undefined };
  }

  #forget(current) {
    const kept = this.#pages
      .filter((page, index) => page.entities && index !== current)
      .sort((a, b) => a.used - b.used);
    let size = kept.reduce((sum, page) => sum + page.size, this.#pages[current].size);
    while (kept.length + 1 > PAGES_KEPT_MAX || (size > TEXT_KEPT_MAX && kept.length > 1)) {
      const oldest = kept.shift();
      size -= oldest.size;
      oldest.entities = undefined;
    }
  }
}

function sameToken(a, b) {
  return a === b || (a && b && a.partition === b.partition && a.row === b.row);
}
