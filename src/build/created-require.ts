import type { Parser } from "./bundler.ts";
import { type CodeLanguage, innerPlace } from "./code-references.ts";
import {
  declaredNames,
  type Edit,
  isNode,
  isText,
  type Node,
  nameOf,
  namesOnly,
  walk,
  withEdits,
} from "./syntax-tree.ts";

/** The name of the project's own `require` in a built module. */
const renamed = "requireFromHere";

/**
 * Replaces calls of a function that `createRequire(import.meta.url)` returned by `require("./settings.json")`: the bundler knows only the
 * latter, and would otherwise leave the file out. Calls with a name that is computed at run time stay unchanged. Returns the new code;
 * `undefined` if nothing changes.
 */
export function withRequire(
  parseAst: Parser["parseAst"],
  code: string,
  lang: CodeLanguage,
): string | undefined {
  if (!/\bcreateRequire\b/.test(code)) return undefined;
  const program = parseAst(code, { lang }) as unknown as Node;
  const declared = declaredNames(program);
  const created = new Set<unknown>();
  walk(program, (node) => {
    if (node.type === "VariableDeclarator" && isCreated(node.init)) created.add((node.id as Node).name);
  });
  // A name that stands for two things in the module is left alone.
  const names = new Set([...created].filter((name) => declared.get(name) === 1));
  if (declared.has("require") && !names.has("require")) return undefined;
  const edits: Edit[] = [];
  const waiting: unknown[] = [program];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (Array.isArray(node)) waiting.push(...node);
    if (!isNode(node)) continue;
    const put = (text: string): void => void edits.push({ start: node.start, end: Number(node.end), text });
    if (node.type === "Identifier" && node.name === "require" && names.has("require")) put(renamed);
    else if (node.type === "Property" && node.shorthand === true && names.has("require")) {
      if (nameOf(node.key) === "require") put(`require: ${renamed}`);
      else waiting.push(node.value);
    } else if (isNode(node.callee) && isKnownCall(node, node.callee, names)) {
      edits.push({ start: node.callee.start, end: Number(node.callee.end), text: "require" });
    } else {
      const skipped = namesOnly(node);
      for (const [field, one] of Object.entries(node)) if (!skipped.includes(field)) waiting.push(one);
    }
  }
  return edits.length === 0 ? undefined : withEdits(code, edits);
}

/** `createRequire(import.meta.url)`, with any expression for the place of the module itself. */
function isCreated(value: unknown): boolean {
  if (!isNode(value) || value.type !== "CallExpression" || nameOf(value.callee) !== "createRequire")
    return false;
  const [place] = value.arguments as readonly unknown[];
  return isNode(place) && innerPlace(place) !== undefined;
}

/** A call whose argument is one literal. */
function isKnownCall(node: Node, callee: Node, names: ReadonlySet<unknown>): boolean {
  if (node.type !== "CallExpression") return false;
  const [name] = node.arguments as readonly unknown[];
  if (!isNode(name) || !isText(name)) return false;
  return callee.type === "Identifier" ? names.has(callee.name) : isCreated(callee);
}
