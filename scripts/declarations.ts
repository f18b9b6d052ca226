import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Module, type ModuleItem, parseSync, printSync } from "@swc/core";

/** A declaration of a `.d.ts` file or a source, and the type names it refers to. */
export interface Declaration {
  readonly file: string;
  readonly name: string;
  /** As TypeScript, without comments; overloads follow each other. */
  readonly code: string;
  readonly refersTo: readonly string[];
  readonly items: readonly ModuleItem[];
}

interface DeclarationFile {
  readonly exports: readonly { readonly name: string; readonly local: string; readonly from?: string }[];
  readonly imports: ReadonlyMap<string, { readonly name: string; readonly from: string }>;
  readonly items: ReadonlyMap<string, readonly ModuleItem[]>;
}

const parsedFiles = new Map<string, DeclarationFile>();

/** The names an entry exports, each with its declaration, in alphabetical order. */
export function exportedDeclarations(entryFile: string): readonly Declaration[] {
  return readDeclarationFile(entryFile)
    .exports.map(({ name }) => findDeclaration(entryFile, name))
    .sort((left, right) => (left.name < right.name ? -1 : 1));
}

/** Follows re-exports and imports to the file that declares `name`. Throws when there is none. */
export function findDeclaration(file: string, name: string): Declaration {
  const { exports, imports, items } = readDeclarationFile(file);
  const exported = exports.find((candidate) => candidate.name === name);
  if (exported?.from !== undefined) return findDeclaration(exported.from, exported.local);
  const local = exported?.local ?? name;
  const imported = imports.get(local);
  if (imported !== undefined) return findDeclaration(imported.from, imported.name);
  const found = items.get(local);
  if (found === undefined) throw new Error(`${file} does not declare ${name}.`);
  return {
    file,
    name,
    code: printItems(found),
    refersTo: ownTypeNames(found, { imports, items }),
    items: found,
  };
}

/** Type names that are declared in this package: the others belong to TypeScript or to a library. */
function ownTypeNames(
  found: readonly ModuleItem[],
  { imports, items }: Pick<DeclarationFile, "imports" | "items">,
): readonly string[] {
  const names = new Set<string>();
  walk(found, (node) => {
    const target =
      node.typeName ?? node.exprName ?? (node.type === "TsExpressionWithTypeArguments" && node.expression);
    if (isNode(target) && target.type === "Identifier") names.add(String(target.value));
  });
  return [...names].filter((name) => imports.has(name) || items.has(name)).sort();
}

function readDeclarationFile(file: string): DeclarationFile {
  const known = parsedFiles.get(file);
  if (known !== undefined) return known;
  const module = parseSync(readFileSync(file, "utf8"), { syntax: "typescript", target: "es2024" });
  const parsed = toDeclarationFile(file, module);
  parsedFiles.set(file, parsed);
  return parsed;
}

function toDeclarationFile(file: string, module: Module): DeclarationFile {
  const exports: DeclarationFile["exports"][number][] = [];
  const imports = new Map<string, { name: string; from: string }>();
  const items = new Map<string, ModuleItem[]>();
  const resolve = (specifier: string) =>
    specifier.startsWith(".")
      ? join(dirname(file), specifier.replace(/\.[jt]s$/, file.endsWith(".d.ts") ? ".d.ts" : ".ts"))
      : undefined;
  const declare = (name: string, item: ModuleItem) => items.set(name, [...(items.get(name) ?? []), item]);

  for (const item of module.body) {
    if (item.type === "ImportDeclaration") {
      const from = resolve(item.source.value);
      for (const specifier of from === undefined ? [] : item.specifiers) {
        const original = specifier.type === "ImportSpecifier" ? specifier.imported?.value : undefined;
        imports.set(specifier.local.value, { name: original ?? specifier.local.value, from: from ?? "" });
      }
    } else if (item.type === "ExportNamedDeclaration") {
      const from = item.source ? resolve(item.source.value) : undefined;
      for (const specifier of item.specifiers) {
        if (specifier.type !== "ExportSpecifier") continue;
        const name = specifier.exported?.value ?? specifier.orig.value;
        if (item.source && from === undefined) {
          // Another package declares it, so the line that exports it again is its declaration.
          declare(name, item);
          exports.push({ name, local: name });
          continue;
        }
        exports.push({ name, local: specifier.orig.value, ...(from === undefined ? {} : { from }) });
      }
    } else {
      const declaration = item.type === "ExportDeclaration" ? item.declaration : item;
      for (const name of declaredNames(declaration)) {
        declare(name, item);
        if (item.type === "ExportDeclaration" && !exports.some((other) => other.name === name)) {
          exports.push({ name, local: name });
        }
      }
    }
  }
  return { exports, imports, items };
}

function declaredNames(declaration: object): readonly string[] {
  if (!isNode(declaration)) return [];
  if (Array.isArray(declaration.declarations)) {
    return declaration.declarations.map((entry) => String(entry.id?.value));
  }
  const identifier = declaration.identifier ?? declaration.id;
  return isNode(identifier) ? [String(identifier.value)] : [];
}

function printItems(items: readonly ModuleItem[]): string {
  return printSync({ ...parseSync(""), body: [...items] }).code.trim();
}

function isNode(value: unknown): value is Record<string, unknown> & { type: string } {
  return typeof value === "object" && value !== null && "type" in value;
}

export function walk(value: unknown, visit: (node: Record<string, unknown>) => void): void {
  if (Array.isArray(value)) {
    for (const entry of value) walk(entry, visit);
  } else if (typeof value === "object" && value !== null) {
    const node = Object.fromEntries(Object.entries(value));
    visit(node);
    for (const entry of Object.values(node)) walk(entry, visit);
  }
}
