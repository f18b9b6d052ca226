import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import { atMost } from "../../data/at-most.ts";
import { type JsonSpan, lineFinder, parseJsonWithSpans } from "../../data/locate-json.ts";

/** An entry of a JSON rule list. */
export interface JsonRule {
  readonly startLine: number;
  readonly endLine: number;
  readonly text: string;
  readonly topic?: string;
  /** What the entry says besides its text and topic. */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/** Where an entry's text and topic are looked for; the first that holds a text counts. */
const textKeys = ["rule", "text", "content", "instructions", "description", "name", "title"];
const topicKeys = ["topic", "category", "group", "tag"];

/**
 * The rules of a JSON rule list: `{"rules": [...]}` or an array, its entries texts or objects.
 *
 * Groups are read too: `rules` may be an object, and an entry may hold `rules` of its own; the name
 * of a group is the topic of its rules. Entries that say nothing are diagnostics, and the others load.
 */
export function readRulesJson(
  path: string,
  source: string,
): { rules: readonly JsonRule[]; diagnostics: readonly Diagnostic[] } {
  const rules: JsonRule[] = [];
  const diagnostics: Diagnostic[] = [];
  const lineOf = lineFinder(source);
  const report = (message: string, line?: number, field?: string): void => {
    diagnostics.push({
      severity: "error",
      rule: "structure",
      message,
      path,
      ...(line !== undefined && { line }),
      ...(field !== undefined && { field }),
    });
  };

  const readList = (value: unknown, span: JsonSpan | undefined, topic: string | undefined): void => {
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) readEntry(item, span?.items[index], { topic, at: index });
    } else if (isRecord(value)) {
      for (const [name, item] of Object.entries(value)) readGroup(name, item, span?.members.get(name));
    } else {
      report("`rules` is neither a list nor an object of rules.", lineOf(span?.start ?? 0), "rules");
    }
  };
  const readGroup = (name: string, value: unknown, span: JsonSpan | undefined): void => {
    if (isRecord(value) && value.rules !== undefined) {
      const { rules: own, ...head } = value;
      if (textOf(head) !== undefined) readEntry(head, span, { topic: name, at: name });
      readList(own, span?.members.get("rules"), name);
    } else if (Array.isArray(value)) readList(value, span, name);
    else readEntry(value, span, { topic: name, at: name });
  };
  const readEntry = (
    value: unknown,
    span: JsonSpan | undefined,
    place: { topic: string | undefined; at: string | number },
  ): void => {
    const lines = { startLine: lineOf(span?.start ?? 0), endLine: lineOf((span?.end ?? 1) - 1) };
    const found =
      typeof value === "string" ? { text: value.trim() } : isRecord(value) ? textOf(value) : undefined;
    if (found === undefined || found.text === "") {
      const keys = textKeys.map((key) => `\`${key}\``).join(", ");
      report(
        `The rule is neither a text nor an object with one of ${keys}.`,
        lines.startLine,
        `rules[${place.at}]`,
      );
      return;
    }
    rules.push({ ...lines, ...(place.topic !== undefined && { topic: place.topic }), ...found });
  };

  try {
    const { value, span } = parseJsonWithSpans(source);
    if (Array.isArray(value)) readList(value, span, undefined);
    else if (isRecord(value) && value.rules !== undefined)
      readList(value.rules, span.members.get("rules"), undefined);
    else report('The file is not a rule list: `{"rules": [...]}` is expected.', 1, "rules");
  } catch (error) {
    report(`The file is not JSON: ${error instanceof Error ? error.message : String(error)}.`);
  }
  return { rules, diagnostics: atMost(diagnostics, path) };
}

/** The text and topic of an entry, and what else it holds; nothing where it says nothing. */
function textOf(
  entry: Readonly<Record<string, unknown>>,
): Pick<JsonRule, "text" | "topic" | "entry"> | undefined {
  const isText = (key: string): boolean => typeof entry[key] === "string" && entry[key].trim() !== "";
  const textKey = textKeys.find(isText);
  const text = textKey === undefined ? undefined : entry[textKey];
  if (typeof text !== "string") return undefined;
  const topicKey = topicKeys.find(isText);
  const topic = topicKey === undefined ? undefined : entry[topicKey];
  const rest = Object.entries(entry).filter(([key]) => key !== textKey && key !== topicKey);
  return {
    text: text.trim(),
    ...(typeof topic === "string" && { topic: topic.trim() }),
    ...(rest.length > 0 && { entry: Object.fromEntries(rest) }),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
