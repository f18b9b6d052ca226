import { isEmptyResult } from "./plan-calls.ts";
import type { Conversation, Lookup } from "./read-conversation.ts";

const notice =
  "I am offline/guide, kit's built-in model: I look things up in this project and quote them. I do not reason; set a provider's key for a model that does.";

/** The longest quote of one lookup, in characters. */
const maxQuote = 6_000;

/** The answer: what was found, quoted under the question it answers, and what the guide is. */
export function composeAnswer(conversation: Conversation): string {
  const sections = conversation.lookups
    .filter((lookup) => !lookup.failed && !isEmptyResult(lookup.result))
    .map(toSection);
  const misses = conversation.lookups
    .filter((lookup) => lookup.failed || isEmptyResult(lookup.result))
    .map(toMiss);
  const parts = [...sections];
  if (misses.length > 0) parts.push(misses.join("\n"));
  if (parts.length === 0) {
    parts.push(
      "I found no file and no word in your question that I could look up. Name a file, such as src/app.ts, or words of a requirement.",
    );
  }
  parts.push(`---\n${notice}`);
  return parts.join("\n\n");
}

function toSection(lookup: Lookup): string {
  const text = lookup.result.length > maxQuote ? `${lookup.result.slice(0, maxQuote)}\n[…]` : lookup.result;
  return `## ${heading(lookup)}\n\n${text}`;
}

function heading(lookup: Lookup): string {
  switch (lookup.tool) {
    case "guidelines_for":
      return `Guidelines that apply to ${String(lookup.input.file)}`;
    case "spec_impact":
      return `What a change of ${listOf(lookup.input.files)} affects`;
    case "spec_search":
      return `Specs about "${String(lookup.input.q)}"`;
    case "grep":
      return `Lines with "${String(lookup.input.pattern)}"`;
    case "read":
      return String(lookup.input.path);
    default:
      return lookup.tool;
  }
}

function toMiss(lookup: Lookup): string {
  return `${heading(lookup)}: ${lookup.failed ? lookup.result : "nothing found"}.`.replace(/\.\.$/, ".");
}

function listOf(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(", ") : String(value);
}
