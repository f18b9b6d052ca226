/** Deeper values would be a burden to every reader of the events. */
const maxDepth = 64;

/** A longer value is no longer given: the result has the whole. */
const maxChars = 100_000;

/** Up to this many characters, a value is given with every part that it grows by. */
const smallChars = 256;

const literals = ["true", "false", "null"];
const halfCharacter = /[\uD800-\uDBFF]$/;
const wholeNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/;

/** The place of the next character: outside of any value, in one, or in the middle of a token. */
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
 * Reads the object or list of an answer while the answer arrives. It begins where a line begins with `{` or `[`, after
 * prose or a fence; a later one replaces it. Linear in the text, whatever the size of its parts.
 */
export class PartialResult {
  #expected: Expected = "line";
  /** The text from the beginning of the value on. */
  #text = "";
  /** How much of the text, with `#ending`, is a value. */
  #whole = 0;
  #ending = "";
  /** The closing brackets of what is open, outermost first. */
  readonly #open: string[] = [];
  /** The escape or token that is being read: a slice of the growing text would copy all of it. */
  #token = "";
  #isKey = false;
  /** `#whole` when a value was last given, and its JSON. */
  #given = -1;
  #json = "";

  /**
   * Gives the value as far as it has come, where enough of it is new: a long one each time it has grown by a sixteenth, so
   * that all values together are as long as a small multiple of the answer. Unfinished texts and numbers are given as far as they
   * have come, unfinished names are not.
   */
  push(delta: string): unknown {
    for (const character of delta) this.#read(character);
    const grown = this.#whole - this.#given;
    const isOver = this.#open.length === 0;
    if (this.#whole === 0 || grown <= 0) return undefined;
    if (!isOver && grown < (this.#given - smallChars) / 16) return undefined;
    this.#given = this.#whole;
    return this.#value();
  }

  #value(): unknown {
    let text = this.#text.slice(0, this.#whole);
    // Half a character waits for its other half.
    if (halfCharacter.test(text)) text = text.slice(0, -1);
    const json = text + this.#ending + this.#open.toReversed().join("");
    if (json === this.#json) return undefined;
    try {
      const value: unknown = JSON.parse(json);
      this.#json = json;
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

  /** Forgets what was read: no value is under way. */
  #begin(expected: Expected): void {
    this.#expected = expected;
    this.#text = "";
    this.#whole = 0;
    this.#ending = "";
    this.#open.length = 0;
    this.#given = -1;
    this.#json = "";
  }

  #step(character: string): void {
    if (this.#expected === "text") this.#inText(character);
    else if (this.#expected === "escape") this.#inEscape(character);
    else if (this.#expected === "token") this.#inToken(character);
    else if (!/[ \t\r\n]/.test(character)) this.#between(character);
  }

  /** Reads what may stand between texts and tokens. */
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
    // The first half of a character waits for the second.
    if (!this.#isKey && !/^\\u[dD][89abAB]/.test(escaped)) this.#keepCandidate('"');
    this.#expect("text");
  }

  #inToken(character: string): void {
    if (/[\w.+-]/.test(character)) {
      this.#readToken(character);
      return;
    }
    if (!literals.includes(this.#token) && wholeNumber.exec(this.#token)?.[0] !== this.#token) {
      this.#fail(character);
      return;
    }
    this.#whole = this.#text.length - 1;
    this.#ending = "";
    this.#expected = ", or end";
    this.#step(character);
  }

  /** A number as far as it is one; `t`, `fa` and the like as what they will be. */
  #readToken(character: string): void {
    this.#token += character;
    const token = this.#token;
    if (token.length > 400) {
      this.#fail("");
      return;
    }
    const literal = literals.find((one) => one.startsWith(token));
    const number = wholeNumber.exec(token)?.[0].length ?? 0;
    if (literal !== undefined) this.#keepCandidate(literal.slice(token.length));
    else if (number > 0) {
      this.#whole = this.#text.length - token.length + number;
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
    // The next value may begin on a line of its own.
    this.#expect(this.#open.length === 0 ? "rest of line" : ", or end");
  }

  #keepCandidate(ending = ""): void {
    this.#whole = this.#text.length;
    this.#ending = ending;
  }

  #expect(expected: Expected): void {
    this.#expected = expected;
  }

  /** It is not JSON: another line may begin with a value. */
  #fail(character: string): void {
    this.#begin(character === "\n" ? "line" : "rest of line");
  }
}
