import type { Node, YAMLMap } from "yaml";
import { isAlias, isMap, isScalar, isSeq } from "yaml";

/** The deepest nesting of YAML that is read; hand-written files have a handful of levels. */
export const maxYamlDepth = 64;

/** Options that refuse aliases, which expand, and duplicate keys. */
export interface YamlInspection {
  readonly hasAlias: boolean;
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
}

/** Walks the nodes of a document whose depth was checked before it was parsed. Linear in the nodes. */
export function inspectYaml(root: Node | null): YamlInspection {
  let hasAlias = false;
  const duplicates: { key: string; offset: number }[] = [];
  const visit = (node: unknown): void => {
    if (isAlias(node)) hasAlias = true;
    else if (isSeq(node)) for (const item of node.items) visit(item);
    else if (isMap(node)) visitMap(node);
  };
  const visitMap = (map: YAMLMap): void => {
    const seen = new Set<string>();
    for (const pair of map.items) {
      if (isScalar(pair.key)) {
        const key = String(pair.key.value);
        if (seen.has(key)) duplicates.push({ key, offset: pair.key.range?.[0] ?? 0 });
        seen.add(key);
      } else visit(pair.key);
      visit(pair.value);
    }
  };
  visit(root);
  return { hasAlias, duplicates };
}

/**
 * Whether brackets, or block markers on one line (`- - - a`), nest deeper than is read. Counts
 * characters without parsing, so that a hostile text never reaches a recursive parser.
 */
export function isYamlTooDeep(text: string): boolean {
  let depth = 0;
  let markers = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 91 || code === 123) {
      depth += 1;
      if (depth > maxYamlDepth) return true;
    } else if (code === 93 || code === 125) depth = Math.max(0, depth - 1);
    else if (code === 10) markers = 0;
    else if ((code === 45 || code === 63 || code === 58) && isBlank(text.charCodeAt(index + 1))) {
      markers += 1;
      if (markers > maxYamlDepth && isMarkerRun(text, index)) return true;
    }
  }
  return hasDeepIndent(text);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9 || code === 10;
}

/** Whether only block markers stand before `index` on its line; prose may hold many hyphens. */
function isMarkerRun(text: string, index: number): boolean {
  const start = text.lastIndexOf("\n", index) + 1;
  return /^[-?: \t]*$/.test(text.slice(start, Math.min(index, start + 4 * maxYamlDepth)));
}

/** Each level of a block needs a line that is indented deeper than the one before. */
function hasDeepIndent(text: string): boolean {
  const indents: number[] = [];
  for (const line of text.split("\n")) {
    const indent = line.search(/[^ ]/);
    if (indent === -1) continue;
    while (indents.length > 0 && (indents.at(-1) ?? 0) >= indent) indents.pop();
    indents.push(indent);
    if (indents.length > maxYamlDepth) return true;
  }
  return false;
}

/** Plain data without `__proto__` keys, which would change what an object inherits when copied. */
export function withoutPrototypeKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPrototypeKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => key !== "__proto__");
  return Object.fromEntries(entries.map(([key, entry]) => [key, withoutPrototypeKeys(entry)]));
}
