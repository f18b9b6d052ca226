import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";

/**
 * A diagnostic as a workflow command of GitHub Actions, which shows it beside the line in a review.
 *
 * Escapes as the runner's own toolkit does (actions/toolkit, `command.ts`).
 */
export function toGithubAnnotation(diagnostic: Diagnostic): string {
  const properties = [
    `file=${escapeProperty(safeLine(diagnostic.path))}`,
    ...(diagnostic.line === undefined ? [] : [`line=${diagnostic.line}`]),
    `title=${escapeProperty(diagnostic.rule)}`,
  ];
  return `::${diagnostic.severity} ${properties.join(",")}::${escapeData(safeLines(diagnostic.message))}`;
}

function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
