import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { constitutionBlocks, planBlocks } from "./section-blocks.ts";
import { specBlocks } from "./spec-blocks.ts";
import { speckitDocumentOf } from "./speckit-path.ts";
import { taskBlocks } from "./task-blocks.ts";
import { writeSpeckit } from "./write-speckit.ts";

/**
 * Spec Kit: `specs/<NNN-name>/{spec,plan,tasks}.md` at any depth, `.specify/memory/constitution.md`.
 *
 * - spec.md: each user story (its scenarios are its acceptance criteria), functional requirement and
 *   success criterion is a requirement.
 * - plan.md: each second-level section is a design.
 * - tasks.md: each checkbox with a task number is a task; it implements the user story and the
 *   requirements it names.
 * - constitution.md: each article is a constraint.
 */
export const speckitAdapter: SpecAdapter = {
  name: "speckit",
  framework: "fw_d",
  matches: (path) => speckitDocumentOf(path) !== undefined,
  parse,
  write: writeSpeckit,
};

function parse({ path, text }: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(text);
  const drafts = draftsOf(scan, path);
  return { drafts, diagnostics: [...unclosedDiagnostics(scan, path), ...repeatedNumbers(drafts, path)] };
}

/** A number that a file gives twice: both blocks are kept, and links mean the first. */
function repeatedNumbers(drafts: readonly SpecDraft[], path: string): Diagnostic[] {
  const lines = new Map<unknown, number>();
  return drafts.flatMap(({ metadata, spec_type, span }): Diagnostic[] => {
    const number =
      metadata.requirement ?? metadata.task ?? (spec_type === "requirement" ? metadata.story : undefined);
    if (number === undefined) return [];
    const first = lines.get(number);
    if (first === undefined) lines.set(number, span.start_line);
    if (first === undefined) return [];
    const message = `${String(number)} is already in line ${first}.`;
    return [
      {
        severity: "warning",
        rule: "structure",
        code: "number_duplicate",
        message,
        path,
        line: span.start_line,
      },
    ];
  });
}

function draftsOf(scan: MarkdownScan, path: string): readonly SpecDraft[] {
  const document = speckitDocumentOf(path);
  switch (document?.kind) {
    case "constitution":
      return constitutionBlocks(scan);
    case "spec":
      return specBlocks(scan, document);
    case "plan":
      return planBlocks(scan, document);
    case "tasks":
      return taskBlocks(scan, document);
    case undefined:
      return [];
  }
}
