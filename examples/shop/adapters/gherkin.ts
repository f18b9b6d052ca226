import { type SpecAdapter, type SpecDraft, slugOf } from "kit/specs";

/** Reads `features/*.feature`: one requirement per scenario. */
export const gherkinAdapter: SpecAdapter = {
  name: "gherkin",
  framework: "custom",
  matches: (path) => path.startsWith("features/") && path.endsWith(".feature"),
  parse: ({ path, text }) => {
    const lines = text.split(/\r\n|\r|\n/);
    const starts = lines.flatMap((line, index) => (/^\s*Scenario:/.test(line) ? [index] : []));
    const drafts = starts.map((start, index): SpecDraft => {
      const end = starts[index + 1] ?? lines.length;
      const title = (lines[start] ?? "").replace(/^\s*Scenario:\s*/, "");
      return {
        id: { kind: "base", value: `gherkin-${slugOf(title)}` },
        framework: "custom",
        spec_type: "requirement",
        title,
        content: lines
          .slice(start + 1, end)
          .map((line) => line.trim())
          .join("\n")
          .trim(),
        tags: ["gherkin"],
        lifecycle: "active",
        priority: "medium",
        metadata: { tool: "gherkin" },
        span: { start_line: start + 1, end_line: end },
        feature: path,
        links: [],
        mentions: [],
      };
    });
    return { drafts, diagnostics: [] };
  },
};
