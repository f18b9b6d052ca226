import { isAlias, isCollection, isMap, isNode, isScalar, parseDocument, visit, type YAMLMap } from "yaml";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { isYamlTooDeep } from "../../specs/data/safe-yaml.ts";
import { readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown } from "../../specs/markdown/scan-markdown.ts";

/**
 * The keys of the Agent Skills format.
 *
 * @see https://agentskills.io/specification
 */
export const skillFields = [
  "name",
  "description",
  "license",
  "compatibility",
  "metadata",
  "allowed-tools",
] as const;

/** Returns why the format does not allow a skill's name; undefined for a valid one. */
export function faultOfSkillName(
  name: string,
  folder?: string,
  characters: RegExp = /^[a-z0-9-]+$/,
): string | undefined {
  if ([...name].length > 64) return "must have at most 64 characters";
  if (!characters.test(name)) return "may hold only lowercase letters, digits and hyphens";
  if (name.startsWith("-") || name.endsWith("-")) return "must not begin or end with a hyphen";
  if (name.includes("--")) return "must not hold two hyphens in a row";
  if (folder !== undefined && folder !== name) return `must be the name of its folder, "${folder}"`;
  return undefined;
}

/** The reference takes letters of every script that have no capital form here. */
const lowerCase = /^(?!.*(?=\p{Lu}|\p{Lt}))[\p{L}\p{N}-]+$/u;

/** The `SKILL.md` of a skill of a tool, at any depth. */
const skillFile = /(?:^|\/)\.[a-z]+\/skills\/(?:.+\/)?([^/]+)\/SKILL\.md$/;

export function isSkillFile(path: string): boolean {
  return skillFile.test(path);
}

export interface SkillProject {
  readonly files: readonly string[];
  readonly readText?: ((path: string) => string | undefined) | undefined;
}

/** Checks the skills of a project by the rules of `skills-ref`. Copies of one skill are checked once. */
export function lintSkills({ files, readText }: SkillProject): Diagnostic[] {
  const seen = new Set<string>();
  return files.flatMap((path) => {
    const folder = skillFile.exec(path)?.[1];
    const text = folder === undefined ? undefined : readText?.(path);
    if (folder === undefined || text === undefined || seen.has(`${folder}\n${text}`)) return [];
    seen.add(`${folder}\n${text}`);
    return faultsOfSkill(text, folder).map(
      ({ message, line }): Diagnostic => ({
        severity: "warning",
        ...{ rule: "skill-format", code: "skill-format", message, path, line },
      }),
    );
  });
}

interface SkillFault {
  readonly message: string;
  readonly line: number;
}

/** Returns a sentence for each rule of `skills-ref` that the text of a `SKILL.md` breaks. Never throws. */
export function faultsOfSkill(text: string, folder: string): readonly SkillFault[] {
  const read = frontOf(text);
  if ("fault" in read) return [{ message: read.fault, line: 1 }];
  const { front } = read;
  const faults: SkillFault[] = [];
  const addFault = (message: string, line = 1): void => void faults.push({ message, line });
  const lineOf = (offset = 0): number => front.slice(0, offset).split("\n").length;
  const document = isYamlTooDeep(front) ? undefined : parseDocument(front, yamlOptions);
  const [error] = document?.errors ?? [];
  if (document === undefined) addFault("Its front matter is nested too deeply.");
  else if (error !== undefined)
    addFault(
      `Its front matter is not YAML: put values with ": " or special characters in quotes.`,
      lineOf(error.pos[0]),
    );
  else if (!isMap(document.contents)) addFault("Its front matter has no keys and values.");
  else {
    const map = document.contents;
    const plain = faultOfForm(map);
    if (plain !== undefined) addFault(plain.message, lineOf(plain.offset));
    const fields = new Map(
      map.items.map(({ key, value }) => [isScalar(key) ? String(key.value) : "", { key, value }] as const),
    );
    const at = (name: string): number => {
      const key = fields.get(name)?.key;
      return lineOf(isNode(key) ? key.range?.[0] : 0);
    };
    const others = [...fields.keys()].filter((name) => !skillFields.some((known) => known === name));
    for (const name of others.slice(0, maxOthers))
      addFault(`"${name.slice(0, 60)}" is no key of the format: put it below metadata.`, at(name));
    for (const field of ["name", "description", "compatibility"] as const) {
      const value = fields.get(field)?.value;
      const isText = isScalar(value) || value === null;
      const written = isScalar(value) ? String(value.value ?? "") : "";
      const fault = !fields.has(field)
        ? field === "compatibility"
          ? undefined
          : `has no ${field}`
        : isText
          ? faultOfField[field](written, folder)
          : `has a ${field} that is not a text`;
      if (fault !== undefined) addFault(`It ${fault}.`, at(field));
    }
  }
  return faults;
}

const faultOfField = {
  name: (written: string, folder: string): string | undefined => {
    const name = written.trim().normalize("NFKC");
    if (name === "") return "has an empty name";
    const fault = faultOfSkillName(name, folder.normalize("NFKC"), lowerCase);
    return fault && `has the name "${name.slice(0, 80)}", which ${fault}`;
  },
  description: (text: string): string | undefined => {
    if (text.trim() === "") return "has an empty description";
    const { length } = [...text];
    return length > 1_024
      ? `has a description of ${length} characters; at most 1,024 are allowed`
      : undefined;
  },
  compatibility: (text: string): string | undefined => {
    const { length } = [...text];
    return length > 500 ? `has a compatibility of ${length} characters; at most 500 are allowed` : undefined;
  },
};

/** `failsafe`: every value is a text, as the reference reads it. Keys are compared below, in linear time. */
const yamlOptions = {
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: "silent",
  schema: "failsafe",
} as const;

/** The most findings about keys that the format does not have. */
const maxOthers = 20;

/** Longer ones are not read. */
const maxLength = 32_768;

/** The text between the fences, with an empty line for the first fence, or what is wrong with them. */
function frontOf(text: string): { readonly front: string } | { readonly fault: string } {
  if (text.startsWith("\ufeff"))
    return { fault: "It begins with a byte order mark, which strict readers refuse." };
  if (!text.startsWith("---"))
    return { fault: "It does not begin with front matter: a line of three hyphens." };
  const lines = text.slice(0, maxLength).split(/\r\n?|\n/);
  const close = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (close === -1) return { fault: "Its front matter is never closed: a line of three hyphens is missing." };
  return { front: `\n${lines.slice(1, close).join("\n")}` };
}

interface FormFault {
  readonly message: string;
  readonly offset: number | undefined;
}

/** Returns the first part of the YAML that strict readers refuse: a key that is there twice, a brace or bracket, an anchor, a tag. */
function faultOfForm(map: YAMLMap): FormFault | undefined {
  let fault: FormFault | undefined;
  const addFault = (node: unknown, message: string): symbol => {
    fault = { message, offset: isNode(node) ? node.range?.[0] : undefined };
    return visit.BREAK;
  };
  visit(map, (_, node) => {
    if (isAlias(node) || (isNode(node) && !isAlias(node) && node.anchor !== undefined))
      return addFault(node, "Its front matter has an anchor or an alias, which strict readers refuse.");
    if (isNode(node) && node.tag !== undefined)
      return addFault(node, "Its front matter has a tag, which strict readers refuse.");
    if (isCollection(node) && node.flow === true)
      return addFault(
        node,
        "Its front matter has { } or [ ], which strict readers refuse: write one key or item a line.",
      );
    if (!isMap(node)) return undefined;
    const keys = new Set<string>();
    for (const { key } of node.items) {
      const name = isScalar(key) ? String(key.value) : "";
      if (keys.has(name)) return addFault(key, `Its front matter has the key "${name.slice(0, 60)}" twice.`);
      keys.add(name);
    }
    return undefined;
  });
  return fault;
}

/** The tools that a skill asks to use without a question. */
export interface AllowedTools {
  /** The entries as its `SKILL.md` writes them, the broadest first. */
  readonly text: string;
  /** Whether the text leaves entries out. */
  readonly isCut: boolean;
}

const maxToolsText = 200;

/** Returns the tools that a skill asks to use without a question; undefined if it asks for none. */
export function allowedToolsOf(text: string): AllowedTools | undefined {
  const { data } = readFrontMatter(scanMarkdown(text));
  const written = data["allowed-tools"];
  const list = Array.isArray(written) ? written.join(", ") : written;
  if (typeof list !== "string") return undefined;
  // Spaces and commas separate entries, except in parentheses.
  const entries = [...new Set(list.match(/(?:\([^)]*\)?|[^\s,(])+/g))].toSorted(
    (one, other) => narrowness(one) - narrowness(other),
  );
  if (entries.length === 0) return undefined;
  const whole = entries.join(", ");
  if (whole.length <= maxToolsText) return { text: whole, isCut: false };
  const kept: string[] = [];
  for (const entry of entries) {
    if ([...kept, entry].join(", ").length > maxToolsText) break;
    kept.push(entry);
  }
  const parts = kept.length > 0 ? kept : [`${whole.slice(0, maxToolsText)}…`];
  return { text: `${parts.join(", ")} and ${entries.length - kept.length} more: read the file`, isCut: true };
}

/** How much an entry restricts its tool: the letters in its parentheses; the least for a whole shell, such as `Bash` or `Bash(*)`. */
function narrowness(entry: string): number {
  const [, tool = "", pattern = ""] = /^([^(]*)(.*)$/s.exec(entry) ?? [];
  const letters = pattern.replace(/[^\p{L}\p{N}]/gu, "").length;
  return letters === 0 && /^(?:bash|shell|powershell|\*)$/i.test(tool) ? -1 : letters;
}
