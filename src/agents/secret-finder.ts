/** The position of a secret in a text: from `start` up to `end`. */
interface Find {
  readonly start: number;
  readonly end: number;
}

/** The state of a streamed search: the held-back end of the text, and finds in it. */
export interface Progress {
  readonly state: number;
  readonly held: string;
  readonly finds: readonly Find[];
}

export const noProgress: Progress = { state: 0, held: "", finds: [] };

/** From this length on, white space inside a secret is ignored: base64 is wrapped at 76 columns. */
const minBrokenLength = 16;

/**
 * Finds many texts in one pass (Aho-Corasick): one step per character, for any number of texts. White space inside a
 * long text is ignored.
 */
export class SecretFinder {
  readonly #classOf = new Map<number, number>();
  /** The classes of ASCII characters, which are the most frequent. */
  readonly #classOfAscii = new Uint16Array(128);
  /** The next state by state and class of the character; state 0 is the beginning. */
  readonly #next: Int32Array;
  /** How many characters of some text a state has seen. */
  readonly #depth: Int32Array;
  /** The state of the longest text that ends here; 0 for none. */
  readonly #ends: Int32Array;
  /** The state of the longest end of what was seen that begins another text. */
  readonly #fallback: Int32Array;
  readonly #classes: number;
  #states = 0;
  /** As given, with their white space. */
  readonly #texts: ReadonlySet<string>;

  constructor(texts: readonly string[]) {
    this.#texts = new Set(texts);
    const stripped = new Set(
      texts.map((text) => text.replace(/[ \t-\r]+/g, "")).filter((text) => text !== ""),
    );
    for (const text of stripped) for (let at = 0; at < text.length; at += 1) this.#learn(text.charCodeAt(at));
    this.#classes = this.#classOf.size + 1;
    const length = [...stripped].reduce((sum, text) => sum + text.length, 1);
    this.#next = new Int32Array(length * this.#classes);
    this.#depth = new Int32Array(length);
    this.#ends = new Int32Array(length);
    this.#fallback = new Int32Array(length);
    for (const text of stripped) this.#add(text);
    this.#link();
  }

  #learn(code: number): void {
    if (this.#classOf.has(code)) return;
    this.#classOf.set(code, this.#classOf.size + 1);
    if (code < 128) this.#classOfAscii[code] = this.#classOf.size;
  }

  #add(text: string): void {
    let state = 0;
    for (let at = 0; at < text.length; at += 1) {
      const edge = state * this.#classes + (this.#classOf.get(text.charCodeAt(at)) ?? 0);
      if (this.#next[edge] === 0) {
        this.#states += 1;
        this.#next[edge] = this.#states;
        this.#depth[this.#states] = at + 1;
      }
      state = this.#next[edge] ?? 0;
    }
    this.#ends[state] = state;
  }

  /** Breadth first: what a state falls back to is shorter, so it is known already. */
  #link(): void {
    const queue = [0];
    for (let head = 0; head < queue.length; head += 1) {
      const state = queue[head] ?? 0;
      const fallback = this.#fallback[state] ?? 0;
      if (this.#ends[state] === 0) this.#ends[state] = this.#ends[fallback] ?? 0;
      for (let kind = 1; kind < this.#classes; kind += 1) {
        const edge = state * this.#classes + kind;
        const beside = state === 0 ? 0 : (this.#next[fallback * this.#classes + kind] ?? 0);
        const to = this.#next[edge] ?? 0;
        if (to === 0) this.#next[edge] = beside;
        else {
          this.#fallback[to] = beside;
          queue.push(to);
        }
      }
    }
  }

  /** Continues the search after the held-back text. */
  read(text: string, before: Progress): { readonly state: number; readonly finds: readonly Find[] } {
    const finds: Find[] = [...before.finds];
    const next = this.#next;
    const ascii = this.#classOfAscii;
    const classes = this.#classes;
    let { state } = before;
    for (let at = before.held.length; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (isSpace(code)) continue;
      const kind = code < 128 ? (ascii[code] ?? 0) : (this.#classOf.get(code) ?? 0);
      // Nothing begins with class 0, and state 0 has no end.
      state = kind === 0 ? 0 : (next[state * classes + kind] ?? 0);
      if (state !== 0 && this.#ends[state] !== 0) this.#note(finds, text, { at, state });
    }
    return { state, finds };
  }

  /** Records the longest text that ends at a position; overlapping finds become one. */
  #note(finds: Find[], text: string, { at, state }: { readonly at: number; readonly state: number }): void {
    for (let end = this.#ends[state] ?? 0; end !== 0; end = this.#ends[this.#fallback[end] ?? 0] ?? 0) {
      const length = this.#depth[end] ?? 0;
      let start = startOf(text, at, length);
      if (length < minBrokenLength && !this.#texts.has(text.slice(start, at + 1))) continue;
      for (let last = finds.at(-1); last !== undefined && last.end > start; last = finds.at(-1)) {
        start = Math.min(start, last.start);
        finds.pop();
      }
      finds.push({ start, end: at + 1 });
      return;
    }
  }

  /** Where a secret may start that continues in the next part. */
  openFrom(text: string, { state, finds }: Pick<Progress, "state" | "finds">): number {
    const depth = this.#depth[state] ?? 0;
    let open = depth === 0 ? text.length : startOf(text, text.length - 1, depth);
    for (let last = finds.length - 1; last >= 0; last -= 1) {
      const find = finds[last];
      if (find === undefined || find.end <= open) break;
      open = Math.min(open, find.start);
    }
    return open;
  }
}

/** The start of a text of `length` characters that ends at a position, without white space. */
function startOf(text: string, at: number, length: number): number {
  let start = at + 1;
  for (let left = length; left > 0; left -= 1) {
    start -= 1;
    while (isSpace(text.charCodeAt(start))) start -= 1;
  }
  return start;
}

function isSpace(code: number): boolean {
  return code === 32 || (code < 14 && code > 8);
}
