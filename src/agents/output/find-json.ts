/**
 * The JSON values in a model's answer, likeliest first: the whole text, then fenced blocks from the
 * last, then the outermost braces or brackets in the text. Linear in the text.
 */
export function findJson(text: string): readonly unknown[] {
  const found: unknown[] = [];
  for (const candidate of candidates(text)) {
    try {
      found.push(JSON.parse(candidate));
    } catch {
      // Not JSON: the next candidate may be.
    }
  }
  return found;
}

function* candidates(text: string): Generator<string> {
  const trimmed = text.trim();
  yield trimmed;
  const lines = trimmed.split("\n");
  const fences: string[] = [];
  let open = -1;
  lines.forEach((line, index) => {
    if (!line.trimStart().startsWith("```")) return;
    if (open === -1) open = index;
    else {
      fences.push(lines.slice(open + 1, index).join("\n"));
      open = -1;
    }
  });
  yield* fences.reverse();
  for (const [opener, closer] of [
    ["{", "}"],
    ["[", "]"],
  ] as const) {
    const from = trimmed.indexOf(opener);
    const to = trimmed.lastIndexOf(closer);
    if (from !== -1 && to > from) yield trimmed.slice(from, to + 1);
  }
  yield* balancedObjects(trimmed);
}

/** Every outermost `{…}` of the text, strings respected; for answers with prose on both sides. */
function* balancedObjects(text: string): Generator<string> {
  let depth = 0;
  let from = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === "\\") index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"' && depth > 0) inString = true;
    else if (character === "{") {
      if (depth === 0) from = index;
      depth += 1;
    } else if (character === "}" && depth > 0) {
      depth -= 1;
      if (depth === 0) yield text.slice(from, index + 1);
    }
  }
}
