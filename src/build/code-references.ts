import { extname } from "node:path";
import { isRecord } from "../base/is-record.ts";
import type { Parser } from "./bundler.ts";

/** The files that a module asks for while it runs, beside its imports. */
export interface CodeReferences {
  readonly files: readonly NamedFile[];
  /** Names of variables of the environment: `process.env.TOKEN`, `ctx.env["TOKEN"]`. */
  readonly variables: readonly string[];
  /** Lines on which it asks where it lies, in a way that does not tell which file it will read. */
  readonly unclear: readonly number[];
  /** Lines with an import whose name is made while it runs. */
  readonly dynamicImports: readonly number[];
}

/** A file or folder that code names in full. */
export interface NamedFile {
  readonly path: string;
  /** The folder that the path begins in: the one of the module, or the root of the project. */
  readonly from: "module" | "root";
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

/**
 * Finds in the code of a module which files it reads from beside itself: `new URL("./prompt.md", import.meta.url)`,
 * `join(import.meta.dirname, "prompts", "a.md")`, and a template such as `${import.meta.dirname}/prompt.md`.
 */
export function findReferences(
  parseAst: Parser["parseAst"],
  code: string,
  lang: CodeLanguage,
): CodeReferences {
  const program = parseAst(code, { lang }) as unknown as Node;
  const declared = declaredNames(program);
  const isPlace = placesOf(program, declared);
  const files: NamedFile[] = [];
  const variables = new Set<string>();
  const explained = new Set<Node>();
  const unclear = new Set<number>();
  const dynamicImports: number[] = [];
  const lineOf = (node: Node): number => code.slice(0, node.start).split("\n").length;
  walk(program, (node) => {
    const alias = placeAlias(node);
    if (alias !== undefined) explain(alias, explained);
    const found = namedFile(node, isPlace);
    if (found !== undefined) {
      files.push({ path: found.path, from: "module" });
      explain(found.place, explained);
    }
    const variable = variableOf(node);
    if (variable !== undefined) variables.add(variable);
    const fromRoot = fileOfRoot(node);
    if (fromRoot !== undefined) files.push({ path: fromRoot, from: "root" });
    // The name of a property is no variable.
    if (node.type === "MemberExpression" && node.computed !== true) explained.add(node.property as Node);
    if (node.type === "Property" && node.computed !== true) explained.add(node.key as Node);
    if (isOwnPlace(node) && !declared.has(node.name) && !explained.has(node)) unclear.add(lineOf(node));
    if (node.type === "ImportExpression" && !isText(node.source)) dynamicImports.push(lineOf(node));
  });
  return { files, variables: [...variables].sort(), unclear: [...unclear], dynamicImports };
}

/** The file that an expression names, and the part of it that says where the module lies. */
function namedFile(
  node: Node,
  isPlace: (node: Node) => boolean,
): { readonly path: string; readonly place: Node } | undefined {
  const args = Array.isArray(node.arguments) ? (node.arguments as Node[]) : [];
  const [first, ...rest] = args;
  if (node.type === "NewExpression" && nameOf(node.callee) === "URL") {
    const [base] = rest;
    const path = first && textOf(first);
    return path !== undefined && base !== undefined && isPlace(base) && isRelative(path)
      ? { path: decoded(path), place: base }
      : undefined;
  }
  if (node.type === "CallExpression" && /^(join|resolve)$/.test(nameOf(node.callee) ?? "")) {
    const parts = rest.map(textOf);
    return first !== undefined &&
      isPlace(first) &&
      parts.length > 0 &&
      parts.every((part) => part !== undefined)
      ? { path: parts.join("/"), place: first }
      : undefined;
  }
  if (node.type === "BinaryExpression" && node.operator === "+") {
    const place = node.left as Node;
    const path = textOf(node.right as Node);
    return path !== undefined && isPlace(place) ? { path: path.replace(/^\/+/, ""), place } : undefined;
  }
  if (node.type === "TemplateLiteral") {
    const [place, ...others] = node.expressions as Node[];
    const texts = (node.quasis as Node[]).map((part) => (part.value as { readonly cooked: string }).cooked);
    return place !== undefined && others.length === 0 && isPlace(place) && texts[0] === ""
      ? { path: (texts[1] ?? "").replace(/^\/+/, ""), place }
      : undefined;
  }
  return undefined;
}

/** `loadSkill("skills/review")` and `readFile("prompts/a.md")`: a server runs in the folder of its project. */
function fileOfRoot(node: Node): string | undefined {
  if (node.type !== "CallExpression") return undefined;
  if (!/^(loadSkill|readFile|readFileSync|createReadStream)$/.test(nameOf(node.callee) ?? ""))
    return undefined;
  const [first] = (node.arguments as Node[] | undefined) ?? [];
  const path = first && textOf(first);
  return path !== undefined && path !== "" && isRelative(path) ? path : undefined;
}

/** Variables that a system, or kit itself, sets. */
const ofSystem = /^(NODE_|npm_|PATH$|HOME$|USER$|TMPDIR$|TZ$|LANG$|CI$|PORT$|KIT_)/;

function variableOf(node: Node): string | undefined {
  if (node.type !== "MemberExpression" || nameOf(node.object) !== "env") return undefined;
  const name = node.computed === true ? textOf(node.property as Node) : nameOf(node.property);
  return name !== undefined && /^[A-Z][A-Z0-9_]*$/.test(name) && !ofSystem.test(name) ? name : undefined;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path.replace(/[?#].*$/, ""));
  } catch {
    return path;
  }
}

function isRelative(path: string): boolean {
  return !/^[a-z][a-z0-9+.-]*:/i.test(path) && !path.startsWith("/");
}

/** `import.meta.url`, `.dirname`, `.filename`, and `__dirname` and `__filename` of CommonJS. */
function isOwnPlace(node: Node): boolean {
  if (node.type === "Identifier") return node.name === "__dirname" || node.name === "__filename";
  if (node.type !== "MemberExpression" || (node.object as Node).type !== "MetaProperty") return false;
  return /^(url|dirname|filename|resolve)$/.test(nameOf(node) ?? "");
}

/** The place within `fileURLToPath(import.meta.url)`, `dirname(place)` and `new URL(".", place)`; undefined for other calls. */
function placeWithin(node: Node): Node | undefined {
  const args = Array.isArray(node.arguments) ? (node.arguments as Node[]) : [];
  const [first, second] = args;
  if (node.type === "CallExpression" && /^(dirname|fileURLToPath)$/.test(nameOf(node.callee) ?? ""))
    return first;
  const isFolder = first !== undefined && /^\.\/?$/.test(textOf(first) ?? "");
  return node.type === "NewExpression" && nameOf(node.callee) === "URL" && isFolder ? second : undefined;
}

/** The place that a variable is a name of: `const here = dirname(fileURLToPath(import.meta.url))`. */
function placeAlias(node: Node): Node | undefined {
  if (node.type !== "VariableDeclarator" || (node.id as Node).type !== "Identifier") return undefined;
  const value = node.init as Node | null;
  return value !== null && innerPlace(value) !== undefined ? value : undefined;
}

function innerPlace(node: Node): Node | undefined {
  if (isOwnPlace(node)) return node;
  const inner = placeWithin(node);
  return inner && innerPlace(inner);
}

/** Whether an expression of this module says where the module lies, by itself or by a variable. */
function placesOf(program: Node, declared: ReadonlySet<unknown>): (node: Node) => boolean {
  const names = new Set<unknown>();
  walk(program, (node) => {
    if (placeAlias(node) !== undefined) names.add((node.id as Node).name);
  });
  const isPlace = (node: Node): boolean => {
    if (node.type === "Identifier" && declared.has(node.name)) return names.has(node.name);
    if (isOwnPlace(node)) return true;
    const inner = placeWithin(node);
    return inner !== undefined && isPlace(inner);
  };
  return isPlace;
}

function declaredNames(program: Node): ReadonlySet<unknown> {
  const names = new Set<unknown>();
  walk(program, (node) => {
    if (node.type === "VariableDeclarator") names.add((node.id as Node).name);
  });
  return names;
}

function explain(place: Node, explained: Set<Node>): void {
  for (let node: Node | undefined = place; node !== undefined; node = placeWithin(node)) explained.add(node);
}

function nameOf(value: unknown): string | undefined {
  const node = value as Node | undefined;
  if (node?.type === "Identifier") return String(node.name);
  return node?.type === "MemberExpression" && node.computed !== true ? nameOf(node.property) : undefined;
}

function isText(value: unknown): boolean {
  return textOf(value as Node) !== undefined;
}

function textOf(node: Node): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type !== "TemplateLiteral" || (node.expressions as Node[]).length > 0) return undefined;
  return ((node.quasis as Node[])[0]?.value as { readonly cooked?: string } | undefined)?.cooked;
}

/** Calls `visit` with each node, outer ones first; deep code does not overflow the stack. */
function walk(root: Node, visit: (node: Node) => void): void {
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

/** How the parser reads a file. */
export type CodeLanguage = "js" | "jsx" | "ts" | "tsx";

export function languageOf(file: string): CodeLanguage {
  const extension = extname(file);
  if (extension === ".tsx" || extension === ".jsx") return extension === ".tsx" ? "tsx" : "jsx";
  return /^\.[cm]?ts$/.test(extension) ? "ts" : "js";
}

/** Expressions that say where a module lies, each as code. */
export interface Place {
  readonly url: string;
  readonly filename: string;
  readonly dirname: string;
}

/**
 * The code with a place put in wherever it asks for its own: `import.meta.url`, `.filename` and `.dirname`, and `__filename` and
 * `__dirname` where the module does not declare them itself. Undefined where it asks nowhere.
 */
export function withPlace(
  parseAst: Parser["parseAst"],
  code: string,
  { lang, place }: { readonly lang: CodeLanguage; readonly place: Place },
): string | undefined {
  if (!/\bimport\.meta\b|\b__(?:dirname|filename)\b/.test(code)) return undefined;
  const program = parseAst(code, { lang }) as unknown as Node;
  const declared = declaredNames(program);
  const ofName: Readonly<Record<string, string>> = { __dirname: place.dirname, __filename: place.filename };
  const ofMeta: Readonly<Record<string, string>> = { ...place };
  const edits: { readonly start: number; readonly end: number; readonly text: string }[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) visit(one);
    if (!isNode(value)) return;
    const { type, start, end, object, property, key } = value;
    const name = String(value.name);
    if (type === "MemberExpression" && isNode(object) && object.type === "MetaProperty") {
      const text = ofMeta[nameOf(property) ?? ""];
      if (text !== undefined) edits.push({ start, end: Number(end), text });
    } else if (type === "MetaProperty" && isImportMeta(value)) {
      const fields = Object.entries(ofMeta).map(([field, text]) => `${field}: ${text}`);
      edits.push({ start, end: Number(end), text: `({ ...import.meta, ${fields.join(", ")} })` });
    } else if (type === "MemberExpression" && value.computed !== true) visit(object);
    else if (type === "Property" && value.shorthand === true && isNode(key) && isFree(key.name)) {
      edits.push({ start, end: Number(end), text: `${key.name}: ${ofName[String(key.name)]}` });
    } else if (type === "Property" && value.computed !== true) visit(value.value);
    else if (type === "Identifier" && isFree(name)) {
      edits.push({ start, end: Number(end), text: ofName[name] ?? name });
    } else for (const one of Object.values(value)) visit(one);
  };
  const isFree = (name: unknown): boolean => String(name) in ofName && !declared.has(name);
  visit(program);
  if (edits.length === 0) return undefined;
  let result = "";
  let at = 0;
  for (const { start, end, text } of edits.sort((one, other) => one.start - other.start)) {
    result += code.slice(at, start) + text;
    at = end;
  }
  return result + code.slice(at);
}

/** And not `new.target`. */
function isImportMeta({ meta }: Node): boolean {
  return isNode(meta) && meta.name === "import";
}

function isNode(value: unknown): value is Node {
  return isRecord(value) && typeof value.type === "string" && typeof value.start === "number";
}
