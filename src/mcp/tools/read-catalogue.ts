import { createHash } from "node:crypto";
import { maskSecrets } from "../../agents/secrets.ts";
import { isRecord } from "../../base/record.ts";
import { cleanLine, cleanText } from "../clean-text.ts";
import { limits } from "../limits.ts";
import { SchemaFault, type SchemaObject } from "../schemas/normalize-schema.ts";
import { vetSchema } from "../schemas/vet-schema.ts";
import type { Catalogue, ListedTool } from "./listed-tool.ts";
import { toolNames } from "./tool-names.ts";

/** A server's tools as it lists them, unread. */
export interface Listing {
  readonly tools: readonly unknown[];
  /** There were more than kit takes. */
  readonly isCut: boolean;
}

export interface CatalogueOptions {
  readonly server: string;
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
  /** Values that no text may show. */
  readonly secrets: readonly string[];
  /** Tools that are taken at most. */
  readonly maxTools: number;
}

type UnnamedTool = Omit<ListedTool, "fullName">;

/**
 * Reads what a server says its tools are. What cannot be used is left out and remarked upon; the others
 * are used. Never throws.
 */
export function readCatalogue(listing: Listing, options: CatalogueOptions): Catalogue {
  const remarks: string[] = [];
  const offered = uniqueTools(listing.tools, remarks);
  const tools: UnnamedTool[] = [];
  const leftOut: string[] = [];
  let chars = 0;
  for (const [name, raw] of offered) {
    if (!isWantedTool(name, options)) continue;
    if (tools.length >= options.maxTools || chars > limits.catalogueChars) {
      leftOut.push(name);
      continue;
    }
    try {
      const tool = readTool(name, raw, options);
      chars += JSON.stringify(tool.schema).length;
      tools.push(tool);
      const [pattern] = tool.schema.leftToServer;
      if (pattern !== undefined) {
        const which = cleanLine(pattern, 100);
        remarks.push(
          `The tool "${name}" has a pattern with look-around or back-references, which kit does not check; the server does: ${which}`,
        );
      }
    } catch (error) {
      if (!(error instanceof SchemaFault)) throw error;
      remarks.push(`The tool "${name}" is left out: its schema ${error.message}.`);
    }
  }
  return {
    tools: withFullNames(tools, options.server),
    leftOut: new Set(toolNames(options.server, leftOut)),
    isPartial: listing.isCut,
    remarks: shortened([
      ...tooMany(tools.length, leftOut, options),
      ...unread(listing),
      ...unmatched(listing, offered, options.allow),
      ...remarks,
    ]),
  };
}

function tooMany(
  used: number,
  leftOut: readonly string[],
  { maxTools }: CatalogueOptions,
): readonly string[] {
  if (leftOut.length === 0) return [];
  const names = leftOut.slice(0, 5).join(", ");
  const more = leftOut.length > 5 ? ` and ${leftOut.length - 5} more` : "";
  const search = maxTools < limits.tools ? ", or set mcp.mode to search_execute" : "";
  return [
    `It offers too many tools: the first ${used} are used, ${leftOut.length} others are left out: ${names}${more}. Name those you need in \`allow\`${search}.`,
  ];
}

function unread({ isCut, tools }: Listing): readonly string[] {
  if (!isCut) return [];
  return [`It lists more tools than kit reads: those after the first ${tools.length} are left out.`];
}

/** The tools by their names, in the server's order; the first of each name. */
function uniqueTools(listed: readonly unknown[], remarks: string[]): ReadonlyMap<string, SchemaObject> {
  const tools = new Map<string, SchemaObject>();
  for (const raw of listed) {
    const name = nameOf(raw);
    if (name === undefined || !isRecord(raw)) {
      remarks.push("A tool is left out: its name is missing, too long, or not printable.");
    } else if (tools.has(name)) {
      remarks.push(`The tool "${name}" is listed twice; the first one is used.`);
    } else tools.set(name, raw);
  }
  return tools;
}

function readTool(name: string, raw: SchemaObject, { server, secrets }: CatalogueOptions): UnnamedTool {
  const annotations = isRecord(raw.annotations) ? raw.annotations : {};
  const schema = vetSchema(raw.inputSchema);
  const title = textOf(raw.title ?? annotations.title);
  const serialized = JSON.stringify({
    title: cleanLine(title, 200),
    description: describe(textOf(raw.description) || title, schema.alternatives),
    schema,
    repeatable: annotations.readOnlyHint === true || annotations.idempotentHint === true,
  });
  // A server knows its own secrets, and may put them where a model reads them.
  const masked: Pick<ListedTool, "title" | "description" | "schema" | "repeatable"> = JSON.parse(
    maskSecrets(serialized, secrets),
  );
  const definition = raw.inputSchema as SchemaObject;
  return {
    ...masked,
    server,
    name,
    definition,
    fingerprint: hashOf([serialized, JSON.stringify(definition)]),
  };
}

// Which name a tool has depends on the others: it is part of what makes it the same tool.
function withFullNames(tools: readonly UnnamedTool[], server: string): readonly ListedTool[] {
  const names = toolNames(
    server,
    tools.map((tool) => tool.name),
  );
  return tools.map((tool, index) => {
    const fullName = names[index] ?? "";
    return { ...tool, fullName, fingerprint: `${fullName} ${tool.fingerprint}` };
  });
}

function hashOf(texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text).update("\0");
  return hash.digest("base64url");
}

function describe(text: string, alternatives: SchemaObject | undefined): string {
  const description = cleanText(text, limits.descriptionChars);
  if (alternatives === undefined) return description;
  const rule = JSON.stringify(alternatives);
  if (rule.length > limits.descriptionChars) return description;
  return `${description}\n\nThe arguments must also match this JSON Schema: ${rule}`.trimStart();
}

function nameOf(raw: unknown): string | undefined {
  const name = isRecord(raw) ? raw.name : undefined;
  if (typeof name !== "string" || name === "" || name.length > limits.toolNameChars) return undefined;
  return cleanLine(name, limits.toolNameChars) === name ? name : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

// A name in `allow` that fits no tool is most often misspelled, and then a tool is missing without a word.
function unmatched(
  { isCut }: Listing,
  offered: ReadonlyMap<string, unknown>,
  allow: readonly string[] = [],
): readonly string[] {
  const names = [...offered.keys()];
  const open = allow.filter((pattern) => !names.some((name) => matchesName(name, pattern)));
  const those = isCut ? "no tool of the server that was read" : "no tool of the server";
  return open.map((pattern) => `\`allow\` names "${pattern}", and ${those} has that name.`);
}

function shortened(all: readonly string[]): readonly string[] {
  const remarks = [...new Set(all)];
  if (remarks.length <= limits.remarks) return remarks;
  const rest = remarks.length - limits.remarks;
  return [...remarks.slice(0, limits.remarks), `There are ${rest} more remarks of this kind.`];
}

/** Which of a server's tools are offered: those that `allow` names (all without it), but for those of `deny`. */
export function isWantedTool(
  name: string,
  filter: { readonly allow?: readonly string[] | undefined; readonly deny?: readonly string[] | undefined },
): boolean {
  if (filter.deny?.some((pattern) => matchesName(name, pattern))) return false;
  return filter.allow === undefined || filter.allow.some((pattern) => matchesName(name, pattern));
}

/** Whether a name is that of the pattern, in which `*` stands for any letters. */
export function matchesName(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  const last = rest.pop() ?? "";
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last))
    return false;
  let from = first.length;
  const end = name.length - last.length;
  for (const part of rest) {
    const found = name.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
