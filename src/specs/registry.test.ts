import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openProject } from "../project/open-project.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import type { ParsedSpecs, SpecAdapter } from "./adapter.ts";
import { checkedAdapter, createSpecRegistry } from "./registry.ts";

function adapter(name: string, accepts: RegExp): SpecAdapter {
  return {
    name,
    framework: "custom",
    matches: (path) => accepts.test(path),
    parse: () => ({ drafts: [], diagnostics: [] }),
  };
}

test.each([
  [".kiro/specs/auth/requirements.md", "kiro"],
  [".kiro/specs/auth/research.md", undefined],
  [".cursor/rules/api.mdc", "cursor"],
  [".cursorrules", "cursor"],
  ["packages/api/CLAUDE.md", "claude"],
  ["specs/001-login/spec.md", "speckit"],
  [".specify/memory/constitution.md", "speckit"],
  ["openspec/specs/cart/spec.md", "openspec"],
  ["docs/cart.spec.md", "tessl"],
  ["README.md", undefined],
  ["src/index.ts", undefined],
])("%s is read by %s", (path, name) => {
  expect(createSpecRegistry().adapterFor(path)?.name).toBe(name);
});

test("a user's adapter comes first, and replaces the built-in adapter of its name", () => {
  const registry = createSpecRegistry({ adapters: [adapter("notes", /\.md$/), adapter("kiro", /^never$/)] });
  expect(registry.adapterFor(".kiro/specs/auth/tasks.md")?.name).toBe("notes");
  expect(registry.adapters.filter(({ name }) => name === "kiro")).toHaveLength(1);
  expect(registry.adapterFor("never")?.name).toBe("kiro");
});

test("the custom adapter reads files that no other tool claims", () => {
  const registry = createSpecRegistry({ custom: [{ include: "**/*.md" }] });
  expect(registry.adapterFor("docs/adr/1.md")?.framework).toBe("custom");
  expect(registry.adapterFor(".kiro/specs/auth/tasks.md")?.name).toBe("kiro");
});

test("names are unique, and no adapter throws on any path", () => {
  const { adapters, adapterFor } = createSpecRegistry({ custom: [{ include: "notes/**" }] });
  expect(new Set(adapters.map(({ name }) => name)).size).toBe(adapters.length);
  for (const path of ["", "/", ".", "a\nb.md", ".kiro/specs/", `${"a/".repeat(5000)}tasks.md`, "\u0000.mdc"])
    adapterFor(path);
});

const right = {
  id: { kind: "base", value: "a" },
  framework: "custom",
  spec_type: "requirement",
  title: "A",
  content: "a",
};

const parseWith = (parsed: unknown): ParsedSpecs =>
  checkedAdapter({
    name: "jira",
    framework: "custom",
    matches: () => true,
    parse: () => parsed as ParsedSpecs,
  }).parse({ path: "x.jira", text: "" });

test("a draft with the essential fields alone is a block, with the defaults of the record", () => {
  const { drafts, diagnostics } = parseWith({ drafts: [right] });
  expect(diagnostics).toEqual([]);
  expect(drafts).toEqual([
    {
      ...right,
      tags: [],
      lifecycle: "active",
      priority: "medium",
      metadata: {},
      span: { start_line: 1, end_line: 1 },
      links: [],
      mentions: [],
    },
  ]);
});

test.each([
  ["id", { id: undefined }],
  ["id", { id: "a" }],
  ["id", { id: { kind: "base" } }],
  ["id", { id: { kind: "serial", value: "a" } }],
  ["title", { title: undefined }],
  ["title", { title: " " }],
  ["title", { title: 7 }],
  ["content", { content: undefined }],
  ["framework", { framework: "jira" }],
  ["framework", { framework: undefined }],
  ["spec_type", { spec_type: "story" }],
])("a draft with a wrong %s is a diagnostic with file and adapter, and no block: %j", (field, wrong) => {
  const { drafts, diagnostics } = parseWith({
    drafts: [{ ...right, span: { start_line: 4, end_line: 5 }, ...wrong }],
  });
  expect(drafts).toEqual([]);
  expect(diagnostics).toMatchObject([{ severity: "error", path: "x.jira", line: 4, field }]);
  expect(diagnostics[0]?.message).toContain('The adapter "jira"');
});

test.each([
  ["lifecycle", "open", "active"],
  ["priority", 1, "medium"],
  ["tags", "a, b", []],
  ["metadata", [], {}],
  ["metadata", { big: 1n }, {}],
  ["span", { start_line: 0, end_line: 1 }, { start_line: 1, end_line: 1 }],
  ["links", [null], []],
  ["mentions", {}, []],
  ["summary", 5, undefined],
  ["feature", 5, undefined],
])("a draft with a wrong %s keeps the rest, and the fault is said", (field, value, kept) => {
  const { drafts, diagnostics } = parseWith({ drafts: [{ ...right, [field]: value }] });
  expect(drafts).toHaveLength(1);
  expect(drafts[0]?.[field as keyof (typeof drafts)[0]]).toEqual(kept);
  expect(diagnostics).toMatchObject([{ path: "x.jira", field }]);
});

test("any output of an adapter becomes a diagnostic or a draft, never an exception", () => {
  for (const parsed of [undefined, null, [], Promise.resolve({ drafts: [] }), { drafts: 1 }]) {
    expect(parseWith(parsed).diagnostics).toMatchObject([{ rule: "structure", path: "x.jira" }]);
  }
  fc.assert(
    fc.property(fc.array(fc.anything()), (drafts) => {
      const { drafts: kept, diagnostics } = parseWith({ drafts });
      expect(kept.length + diagnostics.length).toBeGreaterThanOrEqual(Math.min(drafts.length, 1));
    }),
  );
});

test("a project reports the faults of a configured adapter, and continues", async () => {
  await using repository = await createTemporaryRepository();
  writeFileSync(join(repository.root, "a.jira"), "");
  writeFileSync(join(repository.root, "CLAUDE.md"), "## A\n\nx\n");
  class Jira implements SpecAdapter {
    readonly name = "jira";
    readonly framework = "custom";
    matches(path: string): boolean {
      return path.endsWith(".jira");
    }
    parse(): ParsedSpecs {
      return { drafts: [right, { ...right, title: undefined }], diagnostics: [] } as unknown as ParsedSpecs;
    }
  }
  const project = await openProject({
    root: repository.root,
    indexFile: ":memory:",
    config: { specs: { adapters: [new Jira()] } },
  });
  expect(project.specs.diagnostics()).toMatchObject([{ path: "a.jira", field: "title" }]);
  expect(
    project.specs
      .query({})
      .specs.map(({ id }) => id)
      .sort(),
  ).toEqual(["a", "fw_c-a"]);
  await project.close();
});

test("a configured adapter names its tool, and kit reads its folders even if Git ignores them", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore": "stories/\n",
    "stories/a.jira": "",
    "b.jira": "",
  });
  await repository.init();
  const jira: SpecAdapter = {
    name: "jira",
    framework: "custom",
    label: "Jira",
    folders: ["stories"],
    matches: (path) => path.endsWith(".jira"),
    parse: () => ({ drafts: [right], diagnostics: [] }) as unknown as ParsedSpecs,
  };
  const project = await openProject({
    root: repository.root,
    indexFile: ":memory:",
    config: { specs: { adapters: [jira] } },
  });
  const { features, counts_by_tool } = project.specs.features();
  expect(features.map(({ feature, tool }) => [feature, tool])).toEqual([
    ["b.jira", "Jira"],
    ["stories/a.jira", "Jira"],
  ]);
  expect(counts_by_tool).toEqual({ Jira: 2 });
  await project.close();
});
