import fc from "fast-check";
import { expect, test } from "vitest";
import { type SyncFormat, syncFormats } from "../../protocol/enums.ts";
import type { ExplainTool } from "../../protocol/guideline-query.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { explainFile } from "../explain/explain-file.ts";
import { isOnlyImports } from "../guideline-imports.ts";
import { compareRecords, type GuidelineRecord } from "../guideline-record.ts";
import { lintGuidelines } from "../lint/lint-guidelines.ts";
import { createGuidelineMatcher } from "../match/match-guidelines.ts";
import { readGuidelines } from "../read-guidelines.ts";
import { planAdoption } from "./plan-adoption.ts";
import { type PlannedSync, planSync } from "./plan-sync.ts";

type Files = ReadonlyMap<string, string>;

interface Rule {
  readonly title: string;
  readonly text: string;
  readonly folder: "" | "web";
  readonly globs: readonly string[];
}

/** A rule as people write it in a format; from the root where the format has no place in a folder. */
const writers: Readonly<Record<SyncFormat, (rule: Rule, index: number) => readonly [string, string]>> = {
  agents: (rule) => [inFolder(rule, "AGENTS.md"), section(rule, rule.globs)],
  fw_c: (rule, index) =>
    rule.globs.length === 0
      ? [inFolder(rule, "CLAUDE.md"), section(rule)]
      : [`.claude/rules/r${index}.md`, file(rule, `paths: ${list(fromRoot(rule))}`)],
  fw_b: (rule, index) => [
    inFolder(rule, `.cursor/rules/r${index}.mdc`),
    file(rule, `globs: ${rule.globs.join(",")}\nalwaysApply: ${rule.globs.length === 0}`),
  ],
  steering: (rule, index) => [
    `.kiro/steering/r${index}.md`,
    file(
      rule,
      scoped(rule) ? `inclusion: fileMatch\nfileMatchPattern: ${list(fromRoot(rule))}` : "inclusion: always",
    ),
  ],
  copilot: (rule, index) =>
    scoped(rule)
      ? [
          `.github/instructions/r${index}.instructions.md`,
          file(rule, `applyTo: "${fromRoot(rule).join(",")}"`),
        ]
      : [".github/copilot-instructions.md", section(rule)],
  gemini: (rule) => [inFolder(rule, "GEMINI.md"), section(rule, rule.globs)],
  windsurf: (rule, index) => [
    `.windsurf/rules/r${index}.md`,
    file(rule, scoped(rule) ? `trigger: glob\nglobs: "${fromRoot(rule).join(",")}"` : "trigger: always_on"),
  ],
  cline: (rule, index) => [
    `.clinerules/r${index}.md`,
    scoped(rule) ? file(rule, `paths: ${list(fromRoot(rule))}`) : `# ${rule.title}\n\n${rule.text}\n`,
  ],
  zed: (rule) => [".rules", section(rule, fromRoot(rule))],
};

const tools: Readonly<Record<SyncFormat, ExplainTool>> = {
  agents: "agents-all",
  fw_c: "fw_c",
  fw_b: "fw_b",
  steering: "fw_a",
  copilot: "copilot",
  gemini: "gemini",
  windsurf: "windsurf",
  cline: "cline",
  zed: "zed",
};

const inFolder = ({ folder }: Rule, name: string): string => (folder === "" ? name : `${folder}/${name}`);
const scoped = ({ folder, globs }: Rule): boolean => folder !== "" || globs.length > 0;
const list = (globs: readonly string[]): string => JSON.stringify(globs);
const file = ({ title, text }: Rule, front: string): string =>
  `---\n${front}\n---\n\n# ${title}\n\n${text}\n`;
const section = ({ title, text }: Rule, globs: readonly string[] = []): string =>
  `## ${title}\n\n${globs.length === 0 ? "" : `_File pattern: \`${globs.join(",")}\`_\n\n`}${text}\n`;

function fromRoot({ folder, globs }: Rule): readonly string[] {
  if (folder === "") return globs;
  return globs.length === 0 ? [`${folder}/**`] : globs.map((glob) => `${folder}/${glob}`);
}

const rules = fc
  .uniqueArray(
    fc.record({
      name: fc.constantFrom("Style", "Tests", "Money", "Names", "Errors", "Logs"),
      folder: fc.constantFrom("" as const, "web" as const),
      globs: fc.constantFrom([], ["src/**/*.ts"], ["*.md", "src/*.ts"]),
    }),
    { minLength: 1, maxLength: 6, selector: ({ name }) => name },
  )
  .map((all) =>
    all.map(
      ({ name, ...rule }): Rule => ({ ...rule, title: name, text: `What we say of ${name} in this house.` }),
    ),
  );
const format = fc.constantFrom(...syncFormats);

function write(all: readonly (readonly [Rule, SyncFormat])[]): Files {
  const files = new Map<string, string>();
  for (const [index, [rule, source]] of all.entries()) {
    const [path, text] = writers[source](rule, index);
    const before = files.get(path);
    files.set(path, before === undefined ? text : `${before}\n${text}`);
  }
  return sorted(files);
}

const sorted = (files: Files): Files => new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
const read = (files: Files) =>
  [...files].map(([path, text]) => ({ path, text, records: readGuidelines({ path, text }).records }));
const recordsOf = (files: Files): GuidelineRecord[] =>
  read(files)
    .flatMap(({ records }) => records)
    .sort(compareRecords);

function apply(files: Files, { entries }: PlannedSync): Files {
  const next = new Map(files);
  for (const { action, path, after } of entries) {
    expect(action).not.toBe("conflict");
    if (after !== undefined) next.set(path, after);
    else if (action === "delete") next.delete(path);
  }
  return sorted(next);
}

/** The texts that a tool puts before its model at a file, without those that only name another file. */
function seen(files: Files, tool: ExplainTool, at: string): string[] {
  const records = recordsOf(files);
  const { applied } = explainFile({
    records,
    matcher: createGuidelineMatcher(records),
    file: at,
    tool,
    readText: (path) => files.get(path),
  });
  return applied
    .map(({ guideline }) => guideline.content)
    .filter((text) => !isOnlyImports(text))
    .sort();
}

/** The rules for a file. */
function meant(all: readonly Rule[], at: string): string[] {
  const isFor = ({ folder, globs }: Rule): boolean => {
    const relative = folder === "" ? at : at.startsWith("web/") ? at.slice(4) : undefined;
    if (relative === undefined || globs.length === 0) return relative !== undefined;
    return /^src\/[^/]+\.ts$/.test(relative) || (globs.includes("*.md") && relative === "a.md");
  };
  return all
    .filter(isFor)
    .map(({ text }) => text)
    .sort();
}

const positions = ["src/a.ts", "web/src/b.ts", "a.md", "web/a.md", "lib/c.py", "web/lib/c.py"];

function expectReached(
  files: Files,
  all: readonly Rule[],
  between: { source: SyncFormat; target: SyncFormat },
): void {
  const { source, target } = between;
  for (const at of positions) {
    const is = seen(files, tools[target], at);
    const due = meant(all, at);
    // Copilot takes only the nearest of several AGENTS.md; an import takes whole files, whatever their patterns.
    if (source === "agents" && target === "copilot") expect(due).toEqual(expect.arrayContaining(is));
    else if (source === "agents" && (target === "fw_c" || target === "gemini"))
      expect(is).toEqual(expect.arrayContaining(due));
    else expect([at, is]).toEqual([at, due]);
  }
}

test("after a sync, what a tool reads are the rules of the source, each once, and another sync writes nothing", () => {
  fc.assert(
    fc.property(rules, format, format, (all, source, target) => {
      fc.pre(source !== target);
      const request = { source, targets: [target] };
      const files = write(all.map((rule) => [rule, source]));
      const after = apply(files, planSync({ ...request, files: read(files) }));
      for (const [path, text] of files) expect(after.get(path)).toBe(text);
      expectReached(after, all, { source, target });
      const again = planSync({ ...request, files: read(after) });
      expect(again.entries.filter(({ action }) => action !== "unchanged")).toEqual([]);
      expect(again.in_sync).toBe(true);
      const said = lintGuidelines(recordsOf(after), {
        files: [...positions, ...after.keys()],
        synced: request,
      });
      expect(
        said.filter(({ rule }) => ["duplicate-guideline", "drift", "contradiction"].includes(rule)),
      ).toEqual([]);
    }),
    { numRuns: rounds(30, 120) },
  );
});

test("after an adoption, source and target have the same content, and no text of either is lost", () => {
  fc.assert(
    fc.property(
      rules,
      fc.infiniteStream(fc.boolean()),
      fc.tuple(format, format),
      (all, isOther, [source, target]) => {
        fc.pre(source !== target);
        const first = all[0] as Rule;
        const spread = all.map(
          (rule) => [rule, rule !== first && isOther.next().value ? target : source] as const,
        );
        const files = write(spread);
        const request = { source, targets: [target] };
        const after = apply(files, planAdoption({ ...request, files: read(files) }));
        for (const { text } of all) expect([...after.values()].join("\n")).toContain(text);
        const own = recordsOf(after).filter(
          ({ source_type, managed }) => source_type === source && managed === undefined,
        );
        expect(
          own
            .map(({ content }) => content)
            .filter((text) => !isOnlyImports(text))
            .sort(),
        ).toEqual(all.map(({ text }) => text).sort());
        expectReached(after, all, { source, target });
        for (const plan of [planSync, planAdoption])
          expect(
            plan({ ...request, files: read(after) }).entries.filter(({ action }) => action !== "unchanged"),
          ).toEqual([]);
      },
    ),
    { numRuns: rounds(30, 120) },
  );
});

test("a guideline that only imports a file is not written for a tool that reads the file itself", () => {
  const files = [
    ["AGENTS.md", "# Ours\n\nUse tabs.\n"],
    ["CLAUDE.md", "@AGENTS.md\n"],
    ["web/CLAUDE.md", "## Web\n\nText.\n"],
  ].map(([path = "", text = ""]) => ({ path, text, records: readGuidelines({ path, text }).records }));
  const { entries } = planSync({ source: "fw_c", targets: ["fw_b", "gemini"], files });
  expect(entries.map(({ path }) => path)).toEqual([
    "GEMINI.md",
    "web/.cursor/rules/web.mdc",
    "web/GEMINI.md",
  ]);
});
