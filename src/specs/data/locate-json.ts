/** The offsets of a JSON value and of its parts in their text; `end` is exclusive. */
export interface JsonSpan {
  readonly start: number;
  end: number;
  readonly items: JsonSpan[];
  readonly members: Map<string, JsonSpan>;
}

export interface LocatedJson {
  readonly value: unknown;
  readonly span: JsonSpan;
  /** Keys that occur a second time in their object; `JSON.parse` takes the last one. */
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
}

/** Deeper values are refused: code that walks them may recurse. */
const maxDataDepth = 64;

/**
 * Parses JSON and locates every value. Throws `SyntaxError` for invalid JSON and for nesting deeper than `maxDataDepth`. Linear in
 * the text, and without recursion, which libraries need: the text may be hostile.
 */
export function parseJsonWithSpans(text: string): LocatedJson {
  if (isTooDeep(text)) throw new SyntaxError(`it is nested deeper than ${maxDataDepth} levels`);
  const value: unknown = JSON.parse(text);
  return { value, ...locate(text) };
}

/** Whether brackets and braces outside of strings nest too deep; before anything else reads the text. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 34) at = stringEnd(text, at) - 1;
    else if (code === 91 || code === 123) {
      depth += 1;
      if (depth > maxDataDepth) return true;
    } else if (code === 93 || code === 125) depth -= 1;
  }
  return false;
}

/** The offset behind the string that opens at `at`; the end of the text when it never closes. */
function stringEnd(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (code === 92) end += 1;
    else if (code === 34) return end + 1;
  }
  return text.length;
}

/** Relies on the text being JSON, so that every mark outside of strings has its one meaning. */
function locate(text: string): Omit<LocatedJson, "value"> {
  const root = spanAt(0, text.length);
  const duplicates: { key: string; offset: number }[] = [];
  const open: { span: JsonSpan; isObject: boolean; key: string | undefined }[] = [];
  const add = (span: JsonSpan): void => {
    const parent = open.at(-1);
    if (parent?.key === undefined) (parent?.span ?? root).items.push(span);
    else {
      parent.span.members.set(parent.key, span);
      parent.key = undefined;
    }
  };
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    const parent = open.at(-1);
    if (code === 34) {
      const end = stringEnd(text, at);
      if (parent?.isObject === true && parent.key === undefined) {
        const key = keyOf(text.slice(at, end));
        if (parent.span.members.has(key)) duplicates.push({ key, offset: at });
        parent.key = key;
      } else add(spanAt(at, end));
      at = end;
    } else if (code === 91 || code === 123) {
      const span = spanAt(at, at);
      add(span);
      open.push({ span, isObject: code === 123, key: undefined });
      at += 1;
    } else if (code === 93 || code === 125) {
      at += 1;
      const closed = open.pop();
      if (closed !== undefined) closed.span.end = at;
    } else if (code === 44 || code === 58 || code <= 32) {
      at += 1;
    } else {
      const start = at;
      while (at < text.length && !isBoundary(text.charCodeAt(at))) at += 1;
      add(spanAt(start, at));
    }
  }
  return { span: root.items[0] ?? root, duplicates };
}

function spanAt(start: number, end: number): JsonSpan {
  return { start, end, items: [], members: new Map() };
}

function isBoundary(code: number): boolean {
  return code === 44 || code === 93 || code === 125 || code <= 32;
}

function keyOf(quoted: string): string {
  const key: unknown = JSON.parse(quoted);
  return typeof key === "string" ? key : quoted;
}

/** The 1-based lines of offsets that are asked for in any order. */
export function lineFinder(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
