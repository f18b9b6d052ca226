/** Deepest value that is emitted: deeper ones would burden every reader of the events. */
const maxDepth = 64;

/** Longest value that is emitted, in characters: the result has the complete value. */
const maxChars = 100_000;

/** Up to this many characters, a value is emitted each time it grows. */
const smallChars = 256;

const literals = ["true", "false", "null"];
const halfCharacter = /[\uD800-\uDBFF]$/;
const numberPrefix = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/;

/** The state of the parser: the kind of character that it expects next. */
type Expected =
  | "line" // the first `{` or `[` of a line
  | "rest of line"
  | "value"
  | "value or ]"
  | "key"
  | "key or }"
  | ":"
  | ", or end"
  | "text"
  | "escape"
  | "token"
  | "nothing"; // the value is too long

/**
 * Parses the object or list of an answer while the answer arrives. The value begins at a line that starts with `{` or
 * `[`, after prose or a fence; a later value replaces it. Linear in the text, whatever the size of the deltas.
 */
export class PartialResult {
  #expected: Expected = "line";
  /** The text since the beginning of the value. */
  #text = "";
  /** Length of the longest prefix of `#text` that becomes JSON with `#ending` and the closing brackets. */
  #parsedLength = 0;
  #ending = "";
  /** The closing brackets of the open objects and lists, outermost first. */
  readonly #open: string[] = [];
  /** The unfinished escape or token; slicing the growing text would copy all of it. */
  #token = "";
  #isKey = false;
  /** `#parsedLength` when the last value was returned, and its JSON. */
  #returnedLength = -1;
  #returnedJson = "";

  /**
   * Returns the value so far, or `undefined` if too little of it is new. A long value is returned each time it has grown
   * by a sixteenth, so that all values together are only a small multiple of the answer. Includes unfinished texts and
   * numbers, but not unfinished property names.
   */
  push(delta: string): unknown {
    for (const character of delta) this.#read(character);
    const grown = this.#parsedLength - this.#returnedLength;
    const isOver = this.#open.length === 0;
    if (this.#parsedLength === 0 || grown <= 0) return undefined;
    if (!isOver && grown < (this.#returnedLength - smallChars) / 16) return undefined;
    this.#returnedLength = this.#parsedLength;
    return this.#value();
  }

  #value(): unknown {
    let text = this.#text.slice(0, this.#parsedLength);
    // Hold back half of a surrogate pair until the other half arrives.
    if (halfCharacter.test(text)) text = text.slice(0, -1);
    const json = text + this.#ending + this.#open.toReversed().join("");
    if (json === this.#returnedJson) return undefined;
    try {
      const value: unknown = JSON.parse(json);
      this.#returnedJson = json;
      return value;
    } catch {
      this.#begin("line");
      return undefined;
    }
  }

  #read(character: string): void {
    switch (this.#expected) {
      case "line":
        if (character === "{" || character === "[") this.#start(character);
        else if (!/\s/.test(character)) this.#expected = "rest of line";
        return;
      case "rest of line":
        if (character === "\n") this.#expected = "line";
        return;
      case "nothing":
        return;
      default:
        if (this.#text.length === maxChars) {
          this.#begin("nothing");
          return;
        }
        this.#text += character;
        this.#step(character);
    }
  }

  #start(character: string): void {
    this.#begin("value");
    this.#text = character;
    this.#step(character);
  }

  /** Discards the value read so far. */
  #begin(expected: Expected): void {
    this.#expected = expected;
    this.#text = "";
    this.#parsedLength = 0;
    this.#ending = "";
    this.#open.length = 0;
    this.#returnedLength = -1;
    this.#returnedJson = "";
  }

  #step(character: string): void {
    if (this.#expected === "text") this.#inText(character);
    else if (this.#expected === "escape") this.#inEscape(character);
    else if (this.#expected === "token") this.#inToken(character);
    else if (!/[ \t\r\n]/.test(character)) this.#between(character);
  }

  /** Reads a character between texts and tokens. */
  #between(character: string): void {
    switch (this.#expected) {
      case ":":
        if (character === ":") this.#expect("value");
        else this.#fail(character);
        break;
      case ", or end":
        if (character === ",") this.#expect(this.#open.at(-1) === "}" ? "key" : "value");
        else this.#close(character);
        break;
      case "key or }":
        if (character === "}") this.#close(character);
        else this.#key(character);
        break;
      case "key":
        this.#key(character);
        break;
      case "value or ]":
        if (character === "]") this.#close(character);
        else this.#beginValue(character);
        break;
      default:
        this.#beginValue(character);
    }
  }

  #key(character: string): void {
    if (character !== '"') {
      this.#fail(character);
      return;
    }
    this.#isKey = true;
    this.#expect("text");
  }

  #beginValue(character: string): void {
    if (character === "{" || character === "[") {
      if (this.#open.length === maxDepth) {
        this.#fail("");
        return;
      }
      this.#open.push(character === "{" ? "}" : "]");
      this.#keepCandidate();
      this.#expect(character === "{" ? "key or }" : "value or ]");
    } else if (character === '"') {
      this.#isKey = false;
      this.#keepCandidate('"');
      this.#expect("text");
    } else {
      this.#token = "";
      this.#expect("token");
      this.#readToken(character);
    }
  }

  #inText(character: string): void {
    if (character === '"') {
      if (!this.#isKey) this.#keepCandidate();
      this.#expect(this.#isKey ? ":" : ", or end");
    } else if (character === "\\") {
      this.#token = character;
      this.#expect("escape");
    } else if (character < " ") this.#fail(character);
    else if (!this.#isKey) this.#keepCandidate('"');
  }

  #inEscape(character: string): void {
    this.#token += character;
    const escaped = this.#token;
    if (escaped[1] === "u" && escaped.length < 6) return;
    if (!/^\\(?:["\\/bfnrt]|u[\da-fA-F]{4})$/.test(escaped)) {
      this.#fail("");
      return;
    }
    // Hold back the first half of a surrogate pair until the second arrives.
    if (!this.#isKey && !/^\\u[dD][89abAB]/.test(escaped)) this.#keepCandidate('"');
    this.#expect("text");
  }

  #inToken(character: string): void {
    if (/[\w.+-]/.test(character)) {
      this.#readToken(character);
      return;
    }
    if (!literals.includes(this.#token) && numberPrefix.exec(this.#token)?.[0] !== this.#token) {
      this.#fail(character);
      return;
    }
    this.#parsedLength = this.#text.length - 1;
    this.#ending = "";
    this.#expected = ", or end";
    this.#step(character);
  }

  /** Accepts a number as far as it is valid, and completes beginnings of literals such as `t` and `fa`. */
  #readToken(character: string): void {
    this.#token += character;
    const token = this.#token;
    if (token.length > 400) {
      this.#fail("");
      return;
    }
    const literal = literals.find((one) => one.startsWith(token));
    const number = numberPrefix.exec(token)?.[0].length ?? 0;
    if (literal !== undefined) this.#keepCandidate(literal.slice(token.length));
    else if (number > 0) {
      this.#parsedLength = this.#text.length - token.length + number;
      this.#ending = "";
    }
  }

  #close(character: string): void {
    if (character !== this.#open.at(-1)) {
      this.#fail(character);
      return;
    }
    this.#open.pop();
    this.#keepCandidate();
    // Another value can begin on a later line.
    this.#expect(this.#open.length === 0 ? "rest of line" : ", or end");
  }

  #keepCandidate(ending = ""): void {
    this.#parsedLength = this.#text.length;
    this.#ending = ending;
  }

  #expect(expected: Expected): void {
    this.#expected = expected;
  }

  /** The text is not JSON; a value can begin on a later line. */
  #fail(character: string): void {
    this.#begin(character === "\n" ? "line" : "rest of line");
  }
}
