/**
 * The comments on the fields of schemas. The compiler drops them from inferred types, so the build puts them back
 * into the declarations, and published JSON Schemas get their descriptions from them.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { listFiles, repositoryRoot } from "./files.ts";

/** An object literal of the sources: its fields, with their comments. */
interface Fields {
  /** Its path below `src/`, without the extension. */
  readonly file: string;
  readonly comments: ReadonlyMap<string, string | undefined>;
}

export interface FieldComments {
  /** Returns the comment of a field, without comment marks, for an object with these fields that is declared in `file`. */
  of(field: string, siblings: ReadonlySet<string>, file: string): string | undefined;
  /** Returns the comment of a schema, by its name. */
  ofSchema(name: string): string | undefined;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** Reads the comments of every source that declares schemas. */
export async function readFieldComments(): Promise<FieldComments> {
  const literals: Fields[] = [];
  const schemas = new Map<string, string>();
  for (const path of await listFiles(join(repositoryRoot, "src"))) {
    if (!path.endsWith(".ts") || /\.(test|suite)\.ts$/.test(path)) continue;
    const text = await readFile(path, "utf8");
    if (!/ from "(zod(\/mini)?|[./]+base\/settings\.ts)";/.test(text)) continue;
    const file = relative(join(repositoryRoot, "src"), path).replace(/\.ts$/, "");
    visit(parseAst(text, { lang: "ts" }), (node) => {
      if (node.type === "ObjectExpression") literals.push({ file, comments: fieldsOf(node, text) });
      if (node.type !== "ExportNamedDeclaration" && node.type !== "VariableDeclaration") return;
      const name = /^(?:export )?const (\w+)/.exec(text.slice(node.start, node.end))?.[1];
      const comment = commentBefore(text, node.start);
      if (name !== undefined && comment !== undefined) schemas.set(name, comment);
    });
  }
  literals.sort((left, right) => right.comments.size - left.comments.size);
  return {
    // An object can be joined from several literals. The largest one with the field wins, those of the same file first.
    of(field, siblings, file) {
      const fitting = literals.filter(
        ({ comments }) => comments.has(field) && [...comments.keys()].every((key) => siblings.has(key)),
      );
      return (fitting.find((literal) => literal.file === file) ?? fitting[0])?.comments.get(field);
    },
    ofSchema: (name) => schemas.get(name),
  };
}

/** Puts the comments into the declarations below a folder. */
export async function writeFieldComments(folder: string): Promise<void> {
  const comments = await readFieldComments();
  for (const path of await listFiles(folder)) {
    if (!path.endsWith(".d.ts")) continue;
    const text = await readFile(path, "utf8");
    if (!/"zod(\/mini)?"/.test(text)) continue;
    const file = relative(folder, path).replace(/\.d\.ts$/, "");
    const insertions: { readonly at: number; readonly comment: string }[] = [];
    visit(parseAst(text, { lang: "dts" }), (node) => {
      if (node.type === "TSTypeLiteral") {
        const members = namedMembers(node);
        const siblings = new Set(members.map(({ name }) => name));
        for (const { name, start } of members) {
          const comment = comments.of(name, siblings, file);
          if (comment !== undefined) insertions.push({ at: start, comment });
        }
      }
      if (node.type !== "ExportNamedDeclaration" || commentBefore(text, node.start) !== undefined) return;
      const schema = /^export (?:interface|type) \w+ (?:extends|=) (?:Infer|Fields)<typeof (\w+)>/.exec(
        text.slice(node.start, node.end),
      )?.[1];
      const comment = schema === undefined ? undefined : comments.ofSchema(schema);
      if (comment !== undefined) insertions.push({ at: node.start, comment });
    });
    await writeFile(path, withInsertions(text, insertions));
  }
}

function withInsertions(
  text: string,
  insertions: readonly { readonly at: number; readonly comment: string }[],
): string {
  const last = insertions.toSorted((left, right) => right.at - left.at);
  return last.reduce((result, { at, comment }) => {
    const indent = /[^\S\n]*$/.exec(result.slice(0, at))?.[0] ?? "";
    return `${result.slice(0, at)}/** ${comment} */\n${indent}${result.slice(at)}`;
  }, text);
}

function fieldsOf(literal: Node, text: string): Fields["comments"] {
  const fields = new Map<string, string | undefined>();
  for (const property of nodesIn(literal.properties)) {
    const name = nameOf(property);
    if (name === undefined) continue;
    const written = text.slice(property.start, property.end);
    const described = /\.meta\(\{\s*description:\s*("(?:[^"\\]|\\.)*"),?\s*\}\)(?:\.optional\(\))?$/.exec(
      written,
    )?.[1];
    const description = described === undefined ? undefined : String(JSON.parse(described));
    const parts = [commentBefore(text, property.start), description];
    fields.set(name, parts.filter((part) => part !== undefined).join(" ") || undefined);
  }
  return fields;
}

function namedMembers(literal: Node): readonly { readonly name: string; readonly start: number }[] {
  return nodesIn(literal.members).flatMap((member) => {
    const name = nameOf(member);
    return name === undefined ? [] : [{ name, start: member.start }];
  });
}

function nameOf({ key }: Node): string | undefined {
  if (!isNode(key)) return undefined;
  const name = key.type === "Literal" ? key.value : key.name;
  return typeof name === "string" ? name : undefined;
}

/** The text of the documentation comment that ends before a position, on one line. */
function commentBefore(text: string, position: number): string | undefined {
  const comment = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text.slice(0, position))?.[1];
  return comment
    ?.replace(/^\s*\*/gm, "")
    .replace(/\s+/g, " ")
    .trim();
}

function visit(node: object, use: (node: Node) => void): void {
  if (isNode(node)) use(node);
  for (const value of Object.values(node)) for (const child of nodesIn(value)) visit(child, use);
}

function nodesIn(value: unknown): readonly Node[] {
  if (Array.isArray(value)) return value.filter(isNode);
  return isNode(value) ? [value] : [];
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
