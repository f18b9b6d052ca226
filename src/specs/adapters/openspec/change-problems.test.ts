import { expect, test } from "vitest";
import { openProject } from "../../../project/open-project.ts";
import { createTemporaryRepository } from "../../../testing/temporary-repository.ts";

const scenario = (name: string) => `#### Scenario: ${name}\n- **WHEN** a\n- **THEN** b\n\n`;
const requirement = (name: string, ...scenarios: string[]) =>
  `### Requirement: ${name}\nThe system SHALL ${name}.\n\n${scenarios.map(scenario).join("")}`;
const current = `# Auth\n\n## Purpose\nAll.\n\n## Requirements\n\n${requirement("Login", "Works", "Fails")}${requirement("Logout", "Works")}`;

/** Code, file and line of what is told of a project with this delta. */
async function problemsOf(files: Readonly<Record<string, string>>): Promise<string[]> {
  await using repository = await createTemporaryRepository({
    "openspec/specs/auth/spec.md": current,
    ...files,
  });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  try {
    return project.specs
      .diagnostics()
      .map(({ code, path, message }) => `${code} ${path.replace("openspec/changes/", "")} ${message}`);
  } finally {
    await project.close();
  }
}

const delta = (text: string) => ({ "openspec/changes/c/specs/auth/spec.md": text });

test("MODIFIED that leaves out scenarios names them", async () => {
  expect(
    await problemsOf(delta(`## MODIFIED Requirements\n\n${requirement("Login", "Works", "New")}`)),
  ).toEqual([
    'scenarios_dropped c/specs/auth/spec.md MODIFIED leaves out the scenario "Fails" of openspec/specs/auth/spec.md: it replaces the whole requirement.',
  ]);
  expect(
    await problemsOf(delta(`## MODIFIED Requirements\n\n${requirement("login", "works", "Fails")}`)),
  ).toEqual([]);
});

test.each([
  ["ADDED", "added_exists", requirement("Login", "Works")],
  ["MODIFIED", "delta_of_nothing", requirement("Sign in", "Works")],
  ["REMOVED", "delta_of_nothing", "### Requirement: Sign in\n**Reason**: gone\n"],
  ["REMOVED", "delta_of_nothing", "- `### Requirement: Sign in`\n"],
  ["RENAMED", "delta_of_nothing", "- FROM: `### Requirement: Sign in`\n- TO: `### Requirement: Enter`\n"],
  ["RENAMED", "renamed_exists", "- FROM: `### Requirement: Login`\n- TO: `### Requirement: Logout`\n"],
])("%s is held against the current spec: %s", async (word, code, text) => {
  const problems = await problemsOf(delta(`## ${word} Requirements\n\n${text}`));
  expect(problems.map((each) => each.split(" ")[0])).toEqual([code]);
});

test.each([
  ["ADDED", requirement("Enter", "Works")],
  ["REMOVED", "### Requirement: Login\n**Reason**: gone\n"],
  ["RENAMED", "- FROM: `### Requirement: Login`\n- TO: `### Requirement: Enter`\n"],
])("%s that fits is told nothing", async (word, text) => {
  expect(await problemsOf(delta(`## ${word} Requirements\n\n${text}`))).toEqual([]);
});

test("a change without a delta is reported, an archived change is not", async () => {
  const proposal = "# Change: x\n\n## Why\nso\n";
  const problems = await problemsOf({
    "openspec/changes/empty/proposal.md": proposal,
    "openspec/changes/empty/tasks.md": "## 1. A\n- [ ] 1.1 b\n",
    "openspec/changes/odd/specs/auth/spec.md": "## Changes\n\nLogin is better.\n",
    "openspec/changes/archive/2026-01-01-old/proposal.md": proposal,
  });
  expect(problems.map((each) => each.split(" ").slice(0, 2).join(" "))).toEqual([
    "change_without_delta empty/proposal.md",
    "change_without_delta odd/specs/auth/spec.md",
  ]);
});
