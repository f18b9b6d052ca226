// Compiled by consumer.campaign.test.ts in a folder where kit is installed from its tarball.
import { defineConfig, type Guideline, type KitConfig, KitError, openProject, type SpecBlock } from "kit";
import { createServer } from "kit/server";
import { type ParsedSpecs, type SpecAdapter, scanMarkdown, slugOf } from "kit/specs";

const adapter: SpecAdapter = {
  name: "notes",
  framework: "custom",
  matches: (path) => path.endsWith(".note.md"),
  parse: ({ text }): ParsedSpecs => ({
    drafts: scanMarkdown(text).headings.map((heading) => ({
      id: { kind: "base", value: `note-${slugOf(heading.title)}` },
      framework: "custom",
      spec_type: "constraint",
      title: heading.title,
      content: heading.title,
      tags: [],
      lifecycle: "active",
      priority: "medium",
      metadata: {},
      span: { start_line: heading.line, end_line: heading.end_line },
      links: [],
      mentions: [],
    })),
    diagnostics: [],
  }),
};

export const config: KitConfig = defineConfig({ specs: { adapters: [adapter] } });

export async function main(): Promise<readonly (SpecBlock | Guideline)[]> {
  const project = await openProject({ root: ".", config });
  try {
    const server = createServer({ project });
    await server.close();
    return [
      ...project.specs.query({ q: "receipt", limit: 5 }).specs,
      ...project.guidelines.list({}).guidelines,
    ];
  } catch (error) {
    if (error instanceof KitError && error.code === "unavailable") return [];
    throw error;
  } finally {
    await project.close();
  }
}
