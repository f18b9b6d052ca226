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
  lang: "ts" | "js",
): CodeReferences {
  const program = parseAst(code, { lang }) as unknown as Node;
  const files: NamedFile[] = [];
  const variables = new Set<string>();
  const explained = new Set<Node>();
  const unclear: number[] = [];
  const dynamicImports: number[] = [];
  const lineOf = (node: Node): number => code.slice(0, node.start).split("\n").length;
  walk(program, (node) => {
    const found = namedFile(node);
    if (found !== undefined) {
      files.push({ path: found.path, from: "module" });
      explained.add(found.place);
    }
    const variable = variableOf(node);
    if (variable !== undefined) variables.add(variable);
    const fromRoot = fileOfRoot(node);
    if (fromRoot !== undefined) files.push({ path: fromRoot, from: "root" });
    if (isPlace(node) && !explained.has(node)) unclear.push(lineOf(node));
    if (node.type === "ImportExpression" && !isText(node.source)) dynamicImports.push(lineOf(node));
  });
  return { files, variables: [...variables].sort(), unclear, dynamicImports };
}

/** The file that an expression names, and the part of it that says where the module lies. */
function namedFile(node: Node): { readonly path: string; readonly place: Node } | undefined {
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
function isPlace(node: Node): boolean {
  if (node.type === "Identifier") return node.name === "__dirname" || node.name === "__filename";
  if (node.type !== "MemberExpression" || (node.object as Node).type !== "MetaProperty") return false;
  return /^(url|dirname|filename|resolve)$/.test(nameOf(node) ?? "");
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
