import type { SpecBlock } from "../../protocol/spec-block.ts";

/**
 * `specs.json` of `exportSpecs`, piece by piece: a repository's specs as one text can be larger than
 * what they were read from, and need not be in memory at once.
 */
export function* toJsonPieces(specs: Iterable<SpecBlock>): Iterable<string> {
  let isFirst = true;
  for (const spec of specs) {
    yield `${isFirst ? '{\n  "specs": [' : ","}\n    ${JSON.stringify(spec, null, 2).replaceAll("\n", "\n    ")}`;
    isFirst = false;
  }
  yield isFirst ? '{\n  "specs": []\n}\n' : "\n  ]\n}\n";
}

/** `specs.jsonl` of `exportSpecs`, line by line. */
export function* toJsonLines(specs: Iterable<SpecBlock>): Iterable<string> {
  for (const spec of specs) yield `${JSON.stringify(spec)}\n`;
}
