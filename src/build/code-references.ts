import { extname } from "node:path";
import { attempt } from "../base/attempt.ts";
import type { Parser } from "./bundler.ts";
import {
  declaredNames,
  type Edit,
  isNode,
  isText,
  type Node,
  nameOf,
  namesOnly,
  textOf,
  walk,
  withEdits,
} from "./syntax-tree.ts";

/** The files and variables that a module reads at run time, besides its imports. */
export interface CodeReferences {
  readonly files: readonly NamedFile[];
  /** Names of variables of the environment: `process.env.TOKEN`, `ctx.env["TOKEN"]`. */
  readonly variables: readonly string[];
  /** Lines that use the module's own path without showing which file they read. */
  readonly unclear: readonly number[];
  /** Lines with an import whose specifier is computed at run time. */
  readonly dynamicImports: readonly number[];
}

/** A path that code contains as one literal. */
export interface NamedFile {
  readonly path: string;
  /** The folder that the path starts from: the module's, or the root of the project. */
  readonly from: "module" | "root";
}

/**
 * Finds in the code of a module the files that it reads relative to its own path: `new URL("./prompt.md", import.meta.url)`,
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
    const unused = unusedRequire(node, program);
    if (unused !== undefined) explain(unused, explained);
    const variable = variableOf(node);
    if (variable !== undefined) variables.add(variable);
    const fromRoot = fileOfRoot(node);
    if (fromRoot !== undefined) files.push({ path: fromRoot, from: "root" });
    // The name of a property is not a variable.
    for (const field of namesOnly(node)) explained.add(node[field] as Node);
    if (isOwnPlace(node) && !declared.has(node.name) && !explained.has(node)) unclear.add(lineOf(node));
    if (node.type === "ImportExpression" && !isText(node.source)) dynamicImports.push(lineOf(node));
  });
  return { files, variables: [...variables].sort(), unclear: [...unclear], dynamicImports };
}

/** The file that an expression names, and the part of it that stands for the module's path. */
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
      ? { path: attempt(() => decodeURIComponent(path.replace(/[?#].*$/, "")), path), place: base }
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

/** The place in `const require = createRequire(place)` where no code is left that calls it: the bundler has taken what it named. */
function unusedRequire(node: Node, program: Node): Node | undefined {
  if (node.type !== "VariableDeclarator" || nameOf((node.init as Node | null)?.callee) !== "createRequire")
    return undefined;
  const { name } = node.id as Node;
  let uses = 0;
  walk(program, (other) => {
    if (other.type === "Identifier" && other.name === name) uses += 1;
  });
  return uses === 1 ? ((node.init as Node).arguments as Node[])[0] : undefined;
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

/** Variables that the system or kit sets. */
const ofSystem = /^(NODE_|npm_|PATH$|HOME$|USER$|TMPDIR$|TZ$|LANG$|CI$|PORT$|KIT_)/;

function variableOf(node: Node): string | undefined {
  if (node.type !== "MemberExpression" || nameOf(node.object) !== "env") return undefined;
  const name = node.computed === true ? textOf(node.property as Node) : nameOf(node.property);
  return name !== undefined && /^[A-Z][A-Z0-9_]*$/.test(name) && !ofSystem.test(name) ? name : undefined;
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

/** The path in a variable: `const here = dirname(fileURLToPath(import.meta.url))`. */
function placeAlias(node: Node): Node | undefined {
  if (node.type !== "VariableDeclarator" || (node.id as Node).type !== "Identifier") return undefined;
  const value = node.init as Node | null;
  return value !== null && innerPlace(value) !== undefined ? value : undefined;
}

/** The inner expression for the module's path: `import.meta.url` of `fileURLToPath(import.meta.url)`. */
export function innerPlace(node: Node): Node | undefined {
  if (isOwnPlace(node)) return node;
  const inner = placeWithin(node);
  return inner && innerPlace(inner);
}

/** Whether an expression stands for the module's path, directly or through a variable. */
function placesOf(program: Node, declared: ReadonlyMap<unknown, number>): (node: Node) => boolean {
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

function explain(place: Node, explained: Set<Node>): void {
  for (let node: Node | undefined = place; node !== undefined; node = placeWithin(node)) explained.add(node);
}

/** How the parser reads a file. */
export type CodeLanguage = "js" | "jsx" | "ts" | "tsx";

export function languageOf(file: string): CodeLanguage {
  const extension = extname(file);
  if (extension === ".tsx" || extension === ".jsx") return extension === ".tsx" ? "tsx" : "jsx";
  return /^\.[cm]?ts$/.test(extension) ? "ts" : "js";
}

/** Expressions for the module's path, each as code. */
export interface Place {
  readonly url: string;
  readonly filename: string;
  readonly dirname: string;
}

/**
 * The code with a fixed path wherever it uses its own: `import.meta.url`, `.filename` and `.dirname`, and
 * `__filename` and `__dirname` where the module does not declare them. Undefined if the code uses none of them.
 */
export function withPlace(
  parseAst: Parser["parseAst"],
  code: string,
  { lang, place }: { readonly lang: CodeLanguage; readonly place: Place },
): string | undefined {
  if (!/\bimport\.meta\b|\b__(?:dirname|filename)\b/.test(code)) return undefined;
  const program = parseAst(code, { lang }) as unknown as Node;
  const declared = declaredNames(program);
  const ofName = new Map([
    ["__dirname", place.dirname],
    ["__filename", place.filename],
  ]);
  const ofMeta = new Map(Object.entries(place));
  /** The place that a free variable stands for. */
  const placeOf = (name: unknown): string | undefined =>
    declared.has(name) ? undefined : ofName.get(String(name));
  const edits: Edit[] = [];
  // A list of what is left, as deep code would overflow the stack.
  const waiting: unknown[] = [program];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) waiting.push(one);
    if (!isNode(value)) return;
    const { type, start, end, object, property, key } = value;
    const put = (text: string): void => void edits.push({ start, end: Number(end), text });
    if (type === "MemberExpression" && isNode(object) && object.type === "MetaProperty") {
      const text = ofMeta.get(nameOf(property) ?? "");
      if (text !== undefined) put(text);
    } else if (type === "MetaProperty" && isImportMeta(value)) {
      const fields = Array.from(ofMeta, ([field, text]) => `${field}: ${text}`);
      put(`({ ...import.meta, ${fields.join(", ")} })`);
    } else if (type === "Identifier") {
      const text = placeOf(value.name);
      if (text !== undefined) put(text);
    } else if (type === "Property" && value.shorthand === true && isNode(key)) {
      const text = placeOf(key.name);
      if (text === undefined) waiting.push(value.value);
      else put(`${key.name}: ${text}`);
    } else {
      const names = namesOnly(value);
      for (const [field, one] of Object.entries(value)) if (!names.includes(field)) waiting.push(one);
    }
  };
  while (waiting.length > 0) visit(waiting.pop());
  return edits.length === 0 ? undefined : withEdits(code, edits);
}

/** `import.meta`, but not `new.target`. */
function isImportMeta({ meta }: Node): boolean {
  return isNode(meta) && meta.name === "import";
}
