import { createHash } from "node:crypto";
import { maskSecrets } from "../../agents/secrets.ts";
import { isRecord } from "../../base/record.ts";
import { cleanLine, cleanText } from "../clean-text.ts";
import { limits } from "../limits.ts";
import { SchemaFault, type SchemaObject } from "../schemas/normalize-schema.ts";
import { vetSchema } from "../schemas/vet-schema.ts";
import type { Catalogue, ListedTool } from "./listed-tool.ts";
import { toolNames } from "./tool-names.ts";

/** The tools that a server lists, unchecked. */
export interface Listing {
  readonly tools: readonly unknown[];
  /** Whether the server lists more tools than kit reads. */
  readonly isCut: boolean;
}

export interface CatalogueOptions {
  readonly server: string;
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
  /** Values to mask in every text. */
  readonly secrets: readonly string[];
  /** The most tools that kit offers. */
  readonly maxTools: number;
}

type UnnamedTool = Omit<ListedTool, "fullName">;

/**
 * Checks the tools that a server lists. Tools that cannot be used are skipped with a remark. Never throws.
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
        const printablePattern = cleanLine(pattern, 100);
        remarks.push(
          `The tool "${name}" has a pattern with look-around or back-references, which only the server checks: ${printablePattern}`,
        );
      }
    } catch (error) {
      if (!(error instanceof SchemaFault)) throw error;
      remarks.push(`The tool "${name}" is not available: its schema ${error.message}.`);
    }
  }
  return {
    tools: withFullNames(tools, options.server),
    leftOut: new Set(toolNames(options.server, leftOut)),
    isPartial: listing.isCut,
    remarks: limitRemarks([
      ...tooManyRemark(tools.length, leftOut, options),
      ...unreadRemark(listing),
      ...unmatchedRemarks(listing, offered, options.allow),
      ...remarks,
    ]),
  };
}

function tooManyRemark(
  used: number,
  leftOut: readonly string[],
  { maxTools }: CatalogueOptions,
): readonly string[] {
  if (leftOut.length === 0) return [];
  const names = leftOut.slice(0, 5).join(", ");
  const moreText = leftOut.length > 5 ? ` and ${leftOut.length - 5} more` : "";
  const search = maxTools < limits.tools ? ", or set mcp.mode to search_execute" : "";
  return [
    `It offers too many tools: the first ${used} are used, ${leftOut.length} others are not available: ${names}${moreText}. Name the tools that you need in \`allow\`${search}.`,
  ];
}

function unreadRemark({ isCut, tools }: Listing): readonly string[] {
  if (!isCut) return [];
  return [`It lists more tools than kit reads: only the first ${tools.length} are available.`];
}

/** The tools by name, in the server's order; the first one of each name. */
function uniqueTools(listed: readonly unknown[], remarks: string[]): ReadonlyMap<string, SchemaObject> {
  const tools = new Map<string, SchemaObject>();
  for (const raw of listed) {
    const name = nameOf(raw);
    if (name === undefined || !isRecord(raw)) {
      remarks.push("A tool is not available: its name is missing, too long, or not printable.");
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
  // A server knows its own secrets, and could put them into texts for models.
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

// A tool's full name depends on the other tools' names, so it is part of the fingerprint.
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

// A name in `allow` that matches no tool is probably misspelled; without this remark the tool would be missing silently.
function unmatchedRemarks(
  { isCut }: Listing,
  offered: ReadonlyMap<string, unknown>,
  allow: readonly string[] = [],
): readonly string[] {
  const names = [...offered.keys()];
  const open = allow.filter((pattern) => !names.some((name) => matchesName(name, pattern)));
  const those = isCut ? "no tool of the server that was read" : "no tool of the server";
  return open.map((pattern) => `\`allow\` names "${pattern}", but ${those} has that name.`);
}

function limitRemarks(all: readonly string[]): readonly string[] {
  const remarks = [...new Set(all)];
  if (remarks.length <= limits.remarks) return remarks;
  const rest = remarks.length - limits.remarks;
  return [...remarks.slice(0, limits.remarks), `There are ${rest} more remarks of this kind.`];
}

/** Whether a tool is offered: `allow` names it (default: all), and `deny` does not. */
export function isWantedTool(
  name: string,
  filter: { readonly allow?: readonly string[] | undefined; readonly deny?: readonly string[] | undefined },
): boolean {
  if (filter.deny?.some((pattern) => matchesName(name, pattern))) return false;
  return filter.allow === undefined || filter.allow.some((pattern) => matchesName(name, pattern));
}

/** Whether a name matches a pattern, in which `*` matches any characters. */
export function matchesName(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  const last = rest.pop() ?? "";
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last))
    return false;
  let from = first.length;
  const end = name.length - last.length;
  for (const part of rest) {
    const index = name.indexOf(part, from);
    if (index < 0 || index + part.length > end) return false;
    from = index + part.length;
  }
  return true;
}
