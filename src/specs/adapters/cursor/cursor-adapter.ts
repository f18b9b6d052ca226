import { hasAtMostCodePoints } from "../../../base/text-size.ts";
import { maxSummaryLength, priorities } from "../../../protocol/enums.ts";
import type { SpecBlock, SpecMetadata } from "../../../protocol/spec-block.ts";
import type {
  DraftMention,
  ParsedSpecs,
  SpecAdapter,
  SpecDraft,
  SpecSource,
  WrittenSpecs,
} from "../../adapter.ts";
import { frontMatterDiagnostics, frontMatterText, readFrontMatter } from "../../markdown/front-matter.ts";
import {
  lineKinds,
  type MarkdownScan,
  scanMarkdown,
  textOfLines,
  unclosedDiagnostics,
} from "../../markdown/scan-markdown.ts";
import { headingLine, toListItem, withoutBlankEdges } from "../../markdown/segments.ts";
import { renderFiles, withFrontMatter } from "../../model/assemble-blocks.ts";
import { blockTitle, slugOf, statedAuthor } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { type ListedRule, rulesOf } from "./rule-list.ts";
import { type JsonRule, readRulesJson, topicOf } from "./rules-json.ts";

/** No title is made of more. */
const maxTitled = 5_000;
const sources = /(?:^|\/)(?:\.cursorrules|\.cursor\/(?:rules\.json|rules\/(?:.*\/)?[^/]+\.mdc))$/;

/**
 // * Cursor: `.cursor/rules.json`, `.cursorrules`, `.cursor/rules/**\/*.mdc`, in any folder. * * One constraint per rule. A rule
 // is an entry of the JSON list, a whole `.mdc` file, or a rule that `rulesOf` finds in a `.cursorrules` file (which can also
 // hold the JSON list). The second tag is the * topic: the heading or label above the rule, the `topic`, `category`, `group` or
 // `tag` of a JSON * entry, the name of the `.mdc` file, the topic of its words (`topicOf`), or else "general". */
export const cursorAdapter: SpecAdapter = {
  name: "cursor",
  framework: "fw_b",
  matches: (path) => sources.test(path),
  parse,
  write: writeCursor,
};

function parse(source: SpecSource): ParsedSpecs {
  if (source.path.endsWith(".mdc")) return parseRuleFile(source);
  if (source.path.endsWith(".json")) return parseJson(source);
  // Some repositories keep the JSON list in the older file; any other file that starts with a brace is text.
  if (/^\s*[{[]/.test(source.text)) {
    const parsed = parseJson(source);
    if (parsed.drafts.length > 0) return parsed;
  }
  return parseRules(source);
}

function parseJson(source: SpecSource): ParsedSpecs {
  if (source.text.trim() === "") return { drafts: [], diagnostics: [] };
  const { rules, diagnostics } = readRulesJson(source.path, source.text);
  const drafts = rules.map((rule) =>
    toDraft(rule, { metadata: jsonMetadata(rule), mentions: mentionsOfText(rule), entry: rule.entry }),
  );
  return { drafts, diagnostics };
}

function parseRules(source: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const { raw, problems } = readFrontMatter(scan);
  const spelled = frontMatterText(raw);
  const drafts = rulesOf(scan).map((rule, index) => {
    const metadata = {
      ...(index === 0 && spelled !== "" && { frontmatter: spelled }),
      ...(rule.topic !== undefined && { topic: rule.topic }),
    };
    return toDraft(rule, { metadata, mentions: mentionsIn(scan, rule.startLine, rule.endLine) });
  });
  return {
    drafts,
    diagnostics: [
      ...frontMatterDiagnostics(source.path, problems),
      ...unclosedDiagnostics(scan, source.path),
    ],
  };
}

function parseRuleFile(source: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const { data, raw, problems } = readFrontMatter(scan);
  const diagnostics = [
    ...frontMatterDiagnostics(source.path, problems),
    ...unclosedDiagnostics(scan, source.path),
  ];
  const { from, to } = withoutBlankEdges(scan, scan.bodyLine, scan.lineCount);
  const body = textOfLines(scan, from, to);
  const spelled = frontMatterText(raw);
  const description = typeof data.description === "string" ? data.description.trim() : "";
  // A rule that Cursor's model requests by its description can consist of the description alone.
  const text = body === "" ? description : body;
  if (text === "") return { drafts: [], diagnostics };
  const name = source.path.slice(source.path.lastIndexOf("/") + 1, -".mdc".length);
  const lines = body === "" ? { startLine: 1, endLine: scan.lineCount } : { startLine: from, endLine: to };
  const draft = toDraft(
    { text, topic: name, ...lines },
    {
      metadata: spelled === "" ? {} : { frontmatter: spelled },
      mentions: mentionsIn(scan, lines.startLine, lines.endLine),
      heading: firstHeading(scan),
    },
  );
  const summary =
    description !== "" && hasAtMostCodePoints(description, maxSummaryLength) ? { summary: description } : {};
  return { drafts: [{ ...draft, ...summary }], diagnostics };
}

interface DraftParts {
  readonly metadata: SpecMetadata;
  readonly mentions: readonly DraftMention[];
  readonly heading?: string | undefined;
  readonly entry?: Readonly<Record<string, unknown>> | undefined;
}

function toDraft(rule: ListedRule, parts: DraftParts): SpecDraft {
  const topic = slugOf(rule.topic ?? "") || topicOf(blockTitle(rule.text)) || "general";
  // The first line of code is a poor title; the text above it is a better one.
  const isCode = /^(?:```|~~~)/.test(rule.text);
  const words = parts.heading ?? plainTitle((isCode && rule.topic) || rule.text, rule.topic);
  const ownTags = Array.isArray(parts.entry?.tags)
    ? parts.entry.tags.filter((tag) => typeof tag === "string")
    : [];
  const tags = ["fw_b", topic, ...ownTags];
  return {
    id: { kind: "sequence", prefix: "fw_b-rule-" },
    framework: "fw_b",
    spec_type: "constraint",
    title: `Cursor rule: ${words || topic}`,
    content: rule.text,
    tags: [...new Set(tags)],
    lifecycle: "active",
    priority: priorities.find((priority) => priority === parts.entry?.priority) ?? "medium",
    metadata: parts.metadata,
    span: { start_line: rule.startLine, end_line: rule.endLine },
    links: [],
    mentions: parts.mentions,
  };
}

/** The title of a rule: its first words without their marks; for a table its heading and its columns. */
function plainTitle(text: string, topic: string | undefined): string {
  const table = /^[ \t]*\|(.+?)\|?[ \t]*(?:\r?\n|$)/.exec(text)?.[1];
  if (table !== undefined) {
    const cells = table.split("|").map((cell) => withoutMarks(cell));
    const columns = cells.filter((cell) => /[\p{L}\p{N}]/u.test(cell)).join(", ");
    return blockTitle([topic, columns].filter((part) => part !== undefined && part !== "").join(": "));
  }
  return blockTitle(withoutMarks(text.replace(/^\s*\[[ xX]\]\s+/, "")));
}

/** Emphasis, links and images as the words that they show; code stays in its backticks. */
function withoutMarks(text: string): string {
  return text
    .slice(0, maxTitled)
    .replace(/!?\[([^\]\n]{1,300})\]\([^()\s]{0,600}\)/g, "$1")
    .replace(/(\*\*|__)(?=\S)([^*_\n]{1,300}?)\1/g, "$2")
    .replace(/(?<![\w*])\*(?=[^\s*])([^*\n]{1,300}?)\*(?![\w*])/g, "$1")
    .trim();
}

function jsonMetadata(rule: JsonRule): SpecMetadata {
  const author = statedAuthor(rule.entry ?? {});
  return {
    ...(rule.topic !== undefined && { topic: rule.topic }),
    ...(rule.entry !== undefined && { entry: rule.entry }),
    ...(author !== undefined && { author }),
  };
}

/** The lines of a JSON text are not lines of the file. */
function mentionsOfText(rule: JsonRule): DraftMention[] {
  const scan = scanMarkdown(rule.text);
  return mentionsIn(scan, 1, scan.lineCount).map((mention) => ({ ...mention, line: rule.startLine }));
}

/** The heading at the start of a rule file's body: the title of the rule. */
function firstHeading(scan: MarkdownScan): string | undefined {
  const heading = scan.headings[0];
  if (heading === undefined || heading.title === "") return undefined;
  for (let line = scan.bodyLine; line < heading.line; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose || textOfLines(scan, line, line).trim() !== "")
      return undefined;
  }
  return heading.title;
}

/** Renders each file in the format of its name: a rule file, a JSON list or a list of rules. */
function writeCursor(blocks: readonly SpecBlock[]): WrittenSpecs {
  return renderFiles(blocks, contentOf);
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  // Only JSON can hold the other fields of an entry, and `.cursorrules` can be JSON too.
  if (path.endsWith(".json") || blocks.some(({ metadata }) => metadata.entry !== undefined))
    return `${JSON.stringify({ rules: blocks.map(toEntry) }, null, 2)}\n`;
  const frontMatter = blocks[0]?.metadata.frontmatter;
  if (path.endsWith(".mdc")) return withFrontMatter(frontMatter, bodyOfRuleFile(blocks));
  return withFrontMatter(frontMatter, toRuleList(blocks));
}

function toEntry({ content, metadata }: SpecBlock): unknown {
  const { topic, entry } = metadata;
  if (topic === undefined && entry === undefined) return content;
  const rest = typeof entry === "object" && entry !== null ? entry : {};
  return { rule: content, ...(topic !== undefined && { topic }), ...rest };
}

/** A rule file holds one rule; a rule that consists of its description has no body. */
function bodyOfRuleFile(blocks: readonly SpecBlock[]): string {
  const bodies = blocks.filter(({ content, summary }) => content !== summary).map(({ content }) => content);
  return bodies.length === 0 ? "" : `${bodies.join("\n\n")}\n`;
}

function toRuleList(blocks: readonly SpecBlock[]): string {
  const lines: string[] = [];
  let topic: unknown;
  for (const [index, block] of blocks.entries()) {
    const blockTopic = block.metadata.topic;
    const opensTopic = blockTopic !== topic && typeof blockTopic === "string";
    if (opensTopic) lines.push(...(index === 0 ? [] : [""]), headingLine(blockTopic, 2), "");
    topic = blockTopic;
    // A heading with nothing below it is the rule.
    if (opensTopic && block.content === blockTopic && blocks[index + 1]?.metadata.topic !== blockTopic)
      continue;
    // A blank line after a long item ends every block that the item leaves open.
    const item = toListItem("-", block.content);
    lines.push(item, ...(item.includes("\n") ? [""] : []));
  }
  while (lines.at(-1) === "") lines.pop();
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}
