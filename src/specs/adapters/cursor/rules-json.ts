import { isRecord } from "../../../base/record.ts";
import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import { atMost, type JsonSpan, lineFinder, parseJsonWithSpans } from "../../data/read-data-file.ts";
import { withoutPrototypeKeys } from "../../data/safe-yaml.ts";

/** An entry of a JSON rule list. */
export interface JsonRule {
  readonly startLine: number;
  readonly endLine: number;
  readonly text: string;
  readonly topic?: string;
  /** The other fields of the entry. */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/** The keys of an entry's text and topic; the first one with a text counts. */
const textKeys = ["rule", "text", "content", "instructions", "description", "name", "title"];
const topicKeys = ["topic", "category", "group", "tag"];
/** Keys that name a group in a list. */
const nameKeys = ["name", "title"];

type Entry = Readonly<Record<string, unknown>>;

/**
 * The rules of a JSON rule list: `{"rules": [...]}` or an array, its entries texts or objects.
 *
 * Reads groups too: `rules` can be an object, and an entry can have `rules`; the name of a group is the topic of its rules.
 * Entries without text become diagnostics, and the others load.
 */
export function readRulesJson(
  path: string,
  source: string,
): { rules: readonly JsonRule[]; diagnostics: readonly Diagnostic[] } {
  const lineOf = lineFinder(source);
  const rules: JsonRule[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const { value, span, topic, field } of candidatesOf(source)) {
    const lines = { startLine: lineOf(span.start), endLine: lineOf(Math.max(span.start, span.end - 1)) };
    const rule = ruleOf(value);
    if (rule !== undefined) rules.push({ ...lines, ...(topic !== undefined && { topic }), ...rule });
    else {
      const message = value instanceof Error ? value.message : noText;
      diagnostics.push({ severity: "error", rule: "structure", message, path, line: lines.startLine, field });
    }
  }
  return { rules, diagnostics: atMost(diagnostics, path) };
}

const noText = `The rule is neither a text nor an object with one of ${textKeys.map((key) => `\`${key}\``).join(", ")}.`;

/** A possible rule, or the error in its place. */
interface Candidate {
  readonly value: unknown;
  readonly span: Pick<JsonSpan, "start" | "end">;
  readonly topic?: string | undefined;
  readonly field: string;
}

function* candidatesOf(source: string): Generator<Candidate> {
  const root = { span: { start: 0, end: 1 }, field: "rules" };
  try {
    const { value, span } = parseJsonWithSpans(source);
    const rules = isEntry(value) ? value.rules : value;
    const at = isEntry(value) ? span.members.get("rules") : span;
    if (typeof rules === "object" && rules !== null && at !== undefined)
      yield* listed(withoutPrototypeKeys(rules), at, { field: "rules" });
    else yield { ...root, value: new Error('The file is not a rule list: `{"rules": [...]}` is expected.') };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    yield { ...root, value: new Error(`The file is not JSON: ${reason}.`) };
  }
}

/** The entries of a list, or of an object whose keys are topics. Its depth was checked by the parser. */
function* listed(
  list: unknown,
  span: JsonSpan,
  place: { topic?: string | undefined; field: string },
): Generator<Candidate> {
  const { topic, field } = place;
  if (Array.isArray(list)) {
    for (const [index, value] of list.entries())
      yield* entries(value, span.items[index] ?? span, { topic, field: `${field}[${index}]` });
  } else if (isEntry(list)) {
    for (const [name, value] of Object.entries(list))
      yield* entries(value, span.members.get(name) ?? span, { topic: name, field: `${field}.${name}` });
  }
}

/** An entry, or the entries of a group; the text of a group itself is a rule, too. */
function* entries(
  value: unknown,
  span: JsonSpan,
  place: { topic?: string | undefined; field: string },
): Generator<Candidate> {
  if (Array.isArray(value)) yield* listed(value, span, place);
  else if (isEntry(value) && typeof value.rules === "object" && value.rules !== null) {
    const { rules, ...head } = value;
    const topic = place.topic ?? firstText(head, [...topicKeys, ...nameKeys])?.text;
    const texts =
      firstText(
        head,
        textKeys.filter((key) => !nameKeys.includes(key)),
      ) !== undefined;
    if (texts) yield { value: head, span, topic, field: place.field };
    yield* listed(rules, span.members.get("rules") ?? span, { topic, field: `${place.field}.rules` });
  } else yield { value, span, ...place };
}

/** The text, the topic and the other fields of an entry; `undefined` for an entry without text. */
function ruleOf(value: unknown): Pick<JsonRule, "text" | "topic" | "entry"> | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : { text: value.trim() };
  if (!isEntry(value)) return undefined;
  const text = firstText(value, textKeys);
  if (text === undefined) return undefined;
  const topic = firstText(value, topicKeys);
  const rest = Object.entries(value).filter(([key]) => key !== text.key && key !== topic?.key);
  return {
    text: text.text,
    ...(topic !== undefined && { topic: topic.text }),
    ...(rest.length > 0 && { entry: Object.fromEntries(rest) }),
  };
}

function firstText(entry: Entry, keys: readonly string[]): { key: string; text: string } | undefined {
  for (const key of keys) {
    const value = entry[key];
    if (typeof value === "string" && value.trim() !== "") return { key, text: value.trim() };
  }
  return undefined;
}

function isEntry(value: unknown): value is Entry {
  return isRecord(value) && !(value instanceof Error);
}

/**
 * The words that decide the topic of a rule without a heading: the first word of the rule that is in this table. Without such a
 * word the topic is "general".
 *
 * @see docs/specs.md, "Topics of rules"
 */
const topicWords: Readonly<Record<string, readonly string[]>> = {
  testing: ["test", "tests", "tested", "testing", "coverage", "mock", "mocks", "vitest", "jest", "pytest"],
  security: [
    "security",
    "secret",
    "secrets",
    "password",
    "passwords",
    "credentials",
    "auth",
    "authentication",
  ],
  errors: ["error", "errors", "exception", "exceptions", "throw", "catch", "retry"],
  documentation: [
    "document",
    "documentation",
    "docs",
    "comment",
    "comments",
    "docstring",
    "docstrings",
    "readme",
  ],
  git: ["git", "commit", "commits", "branch", "branches", "rebase", "pull request", "pull requests"],
  types: ["type", "types", "typed", "typing", "interface", "interfaces", "generics"],
  style: [
    "format",
    "formatting",
    "lint",
    "indent",
    "indentation",
    "tabs",
    "semicolons",
    "prettier",
    "eslint",
  ],
  naming: ["name", "names", "naming", "camelcase", "snake_case", "kebab-case", "pascalcase"],
  performance: ["performance", "cache", "caching", "memoize", "optimize", "latency"],
  accessibility: ["accessibility", "accessible", "a11y", "aria"],
  database: ["database", "sql", "query", "queries", "migration", "migrations", "orm"],
  api: ["api", "apis", "endpoint", "endpoints", "rest", "graphql", "http"],
  ui: ["ui", "component", "components", "css", "layout", "tailwind"],
  validation: ["validate", "validation", "validated", "sanitize", "zod"],
  logging: ["log", "logs", "logging", "logger", "metrics", "tracing"],
  dependencies: [
    "dependency",
    "dependencies",
    "package",
    "packages",
    "npm",
    "pnpm",
    "yarn",
    "import",
    "imports",
  ],
  typescript: ["typescript", "tsconfig"],
  javascript: ["javascript", "ecmascript", "esm"],
  python: ["python", "pep8", "pydantic"],
  rust: ["rust", "cargo", "clippy"],
  go: ["golang", "goroutine", "goroutines"],
  java: ["java", "kotlin", "spring"],
  react: ["react", "jsx", "tsx", "hooks"],
  build: ["build", "ci", "deploy", "deployment", "docker", "pipeline"],
  structure: [
    "folder",
    "folders",
    "directory",
    "directories",
    "module",
    "modules",
    "architecture",
    "structure",
  ],
};

const topics = new Map(
  Object.entries(topicWords).flatMap(([topic, words]) => words.map((word) => [word, topic] as const)),
);

/** The topic of a sentence by the first of its words that is in the table. */
export function topicOf(text: string): string | undefined {
  const words = text.toLowerCase().match(/[a-z0-9_-]+/g) ?? [];
  for (const [index, word] of words.entries()) {
    const topic = topics.get(`${word} ${words[index + 1] ?? ""}`) ?? topics.get(word);
    if (topic !== undefined) return topic;
  }
  return undefined;
}
