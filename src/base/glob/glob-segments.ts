/** A piece of a name in a pattern. */
export type Token = { readonly kind: "text"; readonly text: string } | { readonly kind: "star" } | Single;
/** One character: any (`?`) or one of a class. */
interface Single {
  readonly kind: "one";
  accepts(character: string): boolean;
}
/** A folder or file name of a pattern, or "globstar" for any number of folders. */
export type Segment = "globstar" | readonly Token[];

/** The segments of a glob without braces, or why it matches nothing. */
export function globSegments(glob: string): Segment[] | string {
  const path = glob.replace(/^(?:\.\/)+/, "").replace(/^\//, "");
  if (path === "") return "it is empty";
  if (path.endsWith("/")) return "it names a folder, and only files are matched";
  const segments: Segment[] = [];
  for (const part of path.split("/")) {
    if (part === "." || part === "..") return "it leaves its folder";
    if (part === "**") {
      if (segments.at(-1) !== "globstar") segments.push("globstar");
      continue;
    }
    const tokens = tokensOf(part);
    if (typeof tokens === "string") return tokens;
    segments.push(tokens);
  }
  // A globstar at the end means everything below, not the folder itself.
  if (segments.at(-1) === "globstar") segments.push([{ kind: "star" }]);
  return segments;
}

function tokensOf(part: string): Token[] | string {
  const tokens: Token[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") tokens.push({ kind: "text", text });
    text = "";
  };
  for (let index = 0; index < part.length; index += 1) {
    const character = part[index] ?? "";
    if (character === "\\") {
      index += 1;
      text += part[index] ?? "\\";
    } else if (character === "*") {
      flush();
      if (tokens.at(-1)?.kind !== "star") tokens.push({ kind: "star" });
    } else if (character === "?") {
      flush();
      tokens.push({ kind: "one", accepts: () => true });
    } else if (character === "[") {
      const found = characterClass(part, index);
      if (found === undefined) return "its bracket is never closed";
      flush();
      tokens.push({ kind: "one", accepts: found.accepts });
      index = found.end;
    } else text += character;
  }
  flush();
  return tokens;
}

function characterClass(part: string, open: number): (Pick<Single, "accepts"> & { end: number }) | undefined {
  const negated = part[open + 1] === "!" || part[open + 1] === "^";
  const first = open + (negated ? 2 : 1);
  const ranges: (readonly [string, string])[] = [];
  for (let index = first; index < part.length; index += 1) {
    let character = part[index] ?? "";
    if (character === "]" && index > first) {
      const accepts = (given: string): boolean =>
        ranges.some(([low, high]) => given >= low && given <= high) !== negated;
      return { accepts, end: index };
    }
    if (character === "\\") {
      index += 1;
      character = part[index] ?? "\\";
    }
    const high = part[index + 1] === "-" ? part[index + 2] : undefined;
    if (high !== undefined && high !== "]") {
      ranges.push([character, high]);
      index += 2;
    } else ranges.push([character, character]);
  }
  return undefined;
}
