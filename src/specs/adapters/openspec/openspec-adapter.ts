import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { openspecDocumentOf } from "./openspec-path.ts";
import { requirementBlocks } from "./requirement-blocks.ts";
import { proposalBlocks, sectionBlocks } from "./section-blocks.ts";
import { taskBlocks } from "./task-blocks.ts";
import { writeOpenspec } from "./write-openspec.ts";

/**
 * OpenSpec: `openspec/specs/<capability>/{spec,design}.md`, `openspec/project.md`, and the specs,
 * proposal, design and tasks of `openspec/changes/<change>`, below any folder. Its blocks are of the
 * framework `custom` with `metadata.tool: "openspec"`.
 *
 * - Each `### Requirement:` is a requirement with its scenarios as criteria; other text of a spec is
 *   a block per section.
 * - In a change, `metadata.delta` says whether a requirement is added, modified, removed or renamed;
 *   all but added ones are linked to the requirement they change, and removed ones are deprecated.
 * - An archived change is obsolete: what it said has been merged into the specs.
 */
export const openspecAdapter: SpecAdapter = {
  name: "openspec",
  framework: "custom",
  matches: (path) => openspecDocumentOf(path) !== undefined,
  parse,
  write: writeOpenspec,
};

function parse({ path, text }: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(text);
  return { drafts: draftsOf(scan, path), diagnostics: unclosedDiagnostics(scan, path) };
}

function draftsOf(scan: MarkdownScan, path: string): readonly SpecDraft[] {
  const document = openspecDocumentOf(path);
  switch (document?.kind) {
    case "spec":
    case "delta":
      return requirementBlocks(scan, document);
    case "proposal":
      return proposalBlocks(scan, document);
    case "design":
    case "project":
      return sectionBlocks(scan, document);
    case "tasks":
      return taskBlocks(scan, document);
    case undefined:
      return [];
  }
}
