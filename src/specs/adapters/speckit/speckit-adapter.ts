import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource } from "../../adapter.ts";
import { scanMarkdown } from "../../markdown/scan-markdown.ts";
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
  parse: (source) => ({ drafts: draftsOf(source), diagnostics: [] }) satisfies ParsedSpecs,
  write: writeSpeckit,
};

function draftsOf({ path, text }: SpecSource): readonly SpecDraft[] {
  const document = speckitDocumentOf(path);
  const scan = scanMarkdown(text);
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
