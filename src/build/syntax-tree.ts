import { isRecord } from "../base/record.ts";

/** A node of the syntax tree of ECMAScript (ESTree), as the bundler's parser gives it. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

export function nameOf(value: unknown): string | undefined {
  const node = value as Node | undefined;
  if (node?.type === "Identifier") return String(node.name);
  return node?.type === "MemberExpression" && node.computed !== true ? nameOf(node.property) : undefined;
}

export function isText(value: unknown): boolean {
  return textOf(value as Node) !== undefined;
}

export function textOf(node: Node): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type !== "TemplateLiteral" || (node.expressions as Node[]).length > 0) return undefined;
  return ((node.quasis as Node[])[0]?.value as { readonly cooked?: string } | undefined)?.cooked;
}

/** Calls `visit` with each node, outer ones first; deep code does not overflow the stack. */
export function walk(root: Node, visit: (node: Node) => void): void {
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index--) waiting.push(value[index]);
    } else if (typeof value === "object" && value !== null) {
      if ("type" in value && typeof value.type === "string") visit(value as Node);
      const children = Object.values(value);
      for (let index = children.length - 1; index >= 0; index--) {
        if (typeof children[index] === "object") waiting.push(children[index]);
      }
    }
  }
}

export function isNode(value: unknown): value is Node {
  return isRecord(value) && typeof value.type === "string" && typeof value.start === "number";
}

/** The names that a module declares, in whichever of its scopes, with how often it does. */
export function declaredNames(program: Node): ReadonlyMap<unknown, number> {
  const counts = new Map<unknown, number>();
  walk(program, (node) => {
    const patterns = [node.id, node.params, node.param];
    // `import { dirname as __dirname }` declares the local name.
    if (node.type.startsWith("Import")) patterns.push(node.local);
    for (const name of boundNames(patterns)) counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  return counts;
}

/** The names that a pattern binds: of variables, parameters, functions and classes; not those in its default values. */
function boundNames(pattern: unknown): readonly unknown[] {
  if (Array.isArray(pattern)) return pattern.flatMap(boundNames);
  if (!isNode(pattern)) return [];
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "AssignmentPattern":
      return boundNames(pattern.left);
    case "ObjectPattern":
      return boundNames(pattern.properties);
    case "ArrayPattern":
      return boundNames(pattern.elements);
    case "Property":
      return boundNames(pattern.value);
    case "RestElement":
      return boundNames(pattern.argument);
    case "TSParameterProperty":
      return boundNames(pattern.parameter);
    default:
      return [];
  }
}

/** The fields of a node that hold the name of a property, of an export or of a label, which is not a variable. */
export function namesOnly({ type, computed }: Node): readonly string[] {
  switch (type) {
    case "MemberExpression":
      return computed === true ? [] : ["property"];
    case "Property":
    case "MethodDefinition":
    case "PropertyDefinition":
    case "AccessorProperty":
      return computed === true ? [] : ["key"];
    case "ImportSpecifier":
    case "ExportSpecifier":
    case "ExportAllDeclaration":
      return ["imported", "exported"];
    case "LabeledStatement":
    case "BreakStatement":
    case "ContinueStatement":
      return ["label"];
    default:
      return [];
  }
}

/** A part of a code that another text replaces. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The code with its edits, which do not overlap, in any order. */
export function withEdits(code: string, edits: readonly Edit[]): string {
  let result = "";
  let at = 0;
  for (const { start, end, text } of edits.toSorted((one, other) => one.start - other.start)) {
    result += code.slice(at, start) + text;
    at = end;
  }
  return result + code.slice(at);
}
