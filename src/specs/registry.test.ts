import { expect, test } from "vitest";
import type { SpecAdapter } from "./adapter.ts";
import { createSpecRegistry } from "./registry.ts";

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

test("an adapter of the user's own is asked first, and replaces the one of its name", () => {
  const registry = createSpecRegistry({ adapters: [adapter("notes", /\.md$/), adapter("kiro", /^never$/)] });
  expect(registry.adapterFor(".kiro/specs/auth/tasks.md")?.name).toBe("notes");
  expect(registry.adapters.filter(({ name }) => name === "kiro")).toHaveLength(1);
  expect(registry.adapterFor("never")?.name).toBe("kiro");
});

test("custom files are asked for where no other tool claims them", () => {
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
