/** The position of a secret in a text: from `start` up to `end`. */
export interface Find {
  readonly start: number;
  readonly end: number;
}

/** The search of a text that arrives in parts. Positions count from its beginning. */
export interface SecretSearch {
  /** How much was read. */
  readonly length: number;
  /** From here on, a secret may have begun that the next part continues. */
  readonly open: number;
  /** How many characters of that secret were read. */
  readonly openLength: number;
  /** Reads the next part, and returns the secrets that end in it. They can overlap. */
  read(part: string): readonly Find[];
}

/** Its state bounds what a part costs, however much was read before. */
class Search implements SecretSearch {
  length = 0;
  open = 0;
  openLength = 0;
  state = 0;
  /** How many characters of white space were read last. */
  spaces = 0;
  /** How many characters of secrets, or of their beginnings, were read. */
  seen = 0;
  /** The positions of the last of them, as a ring. */
  readonly starts: number[] = [];
  /** The text from `open` on. */
  text = "";
  readonly #finder: SecretFinder;

  constructor(finder: SecretFinder) {
    this.#finder = finder;
  }

  read(part: string): readonly Find[] {
    return this.#finder.read(this, part);
  }
}

/** From this length on, white space inside a secret is ignored: base64 is wrapped at 76 columns. */
const minBrokenLength = 16;

/** More white space in a row ends a secret, unless a secret itself has more: what may be a beginning is held back. */
const maxSpaces = 64;

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
  /** How many characters a state has seen of the longest text that can go on. */
  readonly #open: Int32Array;
  readonly #classes: number;
  readonly #maxSpaces: number;
  /** The size of the rings of positions, minus one: at least as long as each text. */
  readonly #ring: number;
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
    this.#open = new Int32Array(length);
    const runs = texts.flatMap((text) => text.match(/[ \t-\r]+/g) ?? []);
    this.#maxSpaces = runs.reduce((most, run) => Math.max(most, run.length), maxSpaces);
    const longest = [...stripped].reduce((most, text) => Math.max(most, text.length), 1);
    this.#ring = 2 ** Math.ceil(Math.log2(longest)) - 1;
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
      this.#open[state] = this.#open[fallback] ?? 0;
      for (let kind = 1; kind < this.#classes; kind += 1) {
        const edge = state * this.#classes + kind;
        const fallbackState = state === 0 ? 0 : (this.#next[fallback * this.#classes + kind] ?? 0);
        const to = this.#next[edge] ?? 0;
        if (to === 0) this.#next[edge] = fallbackState;
        else {
          this.#fallback[to] = fallbackState;
          this.#open[state] = this.#depth[state] ?? 0;
          queue.push(to);
        }
      }
    }
  }

  /** Begins a search of a text that arrives in parts. */
  search(): SecretSearch {
    return new Search(this);
  }

  read(search: Search, part: string): readonly Find[] {
    const finds: Find[] = [];
    const next = this.#next;
    const ascii = this.#classOfAscii;
    const classes = this.#classes;
    const ends = this.#ends;
    const ring = this.#ring;
    const { length, starts } = search;
    let { state, spaces, seen } = search;
    search.text += part;
    search.length += part.length;
    for (let at = 0; at < part.length; at += 1) {
      const code = part.charCodeAt(at);
      if (isSpace(code)) {
        spaces += 1;
        if (spaces > this.#maxSpaces) state = 0;
        continue;
      }
      spaces = 0;
      const kind = code < 128 ? (ascii[code] ?? 0) : (this.#classOf.get(code) ?? 0);
      // Nothing begins with class 0, and state 0 has no end.
      state = kind === 0 ? 0 : (next[state * classes + kind] ?? 0);
      if (state === 0) continue;
      starts[seen & ring] = length + at;
      seen += 1;
      if (ends[state] === 0) continue;
      search.seen = seen;
      const find = this.#findAt(search, state, length + at + 1);
      if (find !== undefined) finds.push(find);
    }
    search.state = state;
    search.spaces = spaces;
    search.seen = seen;
    search.openLength = this.#open[state] ?? 0;
    search.open = search.openLength === 0 ? search.length : this.#startOf(search, search.openLength);
    const held = search.length - search.open;
    if (held < search.text.length) search.text = search.text.slice(search.text.length - held);
    return finds;
  }

  /** The longest text that ends at a position. */
  #findAt(search: Search, state: number, end: number): Find | undefined {
    const from = search.length - search.text.length;
    for (let text = this.#ends[state] ?? 0; text !== 0; text = this.#ends[this.#fallback[text] ?? 0] ?? 0) {
      const length = this.#depth[text] ?? 0;
      const start = this.#startOf(search, length);
      if (length >= minBrokenLength || this.#texts.has(search.text.slice(start - from, end - from)))
        return { start, end };
    }
    return undefined;
  }

  /** The position of the secret of which the last `length` characters were seen. */
  #startOf({ starts, seen }: Search, length: number): number {
    return starts[(seen - length) & this.#ring] ?? 0;
  }
}

function isSpace(code: number): boolean {
  return code === 32 || (code < 14 && code > 8);
}
