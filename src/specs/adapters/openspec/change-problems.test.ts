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

test("a requirement without a scenario and a spec without its sections are reported, as OpenSpec refuses them", async () => {
  const problems = await problemsOf({
    "openspec/specs/cart/spec.md": `# Cart\n\n${requirement("Keep")}`,
    ...delta(
      `## ADDED Requirements\n\n${requirement("Enter")}## REMOVED Requirements\n\n${requirement("Login")}`,
    ),
    "openspec/changes/c/proposal.md": "# C\n\nText.\n",
  });
  expect(problems).toEqual([
    'scenario_missing c/specs/auth/spec.md OpenSpec refuses the requirement "Enter": it has no "#### Scenario:".',
    'section_missing openspec/specs/cart/spec.md OpenSpec refuses this spec: it has no section "## Purpose".',
    'section_missing openspec/specs/cart/spec.md OpenSpec refuses this spec: it has no section "## Requirements".',
    'scenario_missing openspec/specs/cart/spec.md OpenSpec refuses the requirement "Keep": it has no "#### Scenario:".',
  ]);
});

test("a change folder without a proposal is reported, unless it is archived", async () => {
  const problems = await problemsOf({
    "openspec/changes/plan-only/plan.md": "# Plan\n",
    "openspec/changes/plan-only/task.md": "- [ ] a\n",
    "openspec/changes/archive/old/plan.md": "# Plan\n",
    "openspec/changes/archive/readme.md": "# Archive\n",
  });
  expect(problems).toEqual([
    "change_without_proposal plan-only/ OpenSpec does not read this change: it has no proposal.md and no tasks.md, only plan.md, task.md.",
  ]);
});

test("lists have what is current before what is proposed, on every page", async () => {
  await using repository = await createTemporaryRepository({
    "openspec/changes/c/proposal.md": "# C\n\nText.\n",
    "openspec/changes/c/tasks.md": "- [ ] 1.1 One\n- [ ] 1.2 Two\n",
    "openspec/specs/auth/spec.md": current,
    "specs/001-a/spec.md": "# A\n\n- **FR-001**: It MUST a.\n",
  });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const ids: string[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const page = project.specs.query({ limit: 2, ...(cursor !== "" && { cursor }) });
    ids.push(...page.specs.map(({ id }) => id));
    cursor = page.next_cursor;
  }
  expect(ids).toEqual([
    "openspec-auth-purpose",
    "openspec-auth-login",
    "openspec-auth-logout",
    "fw_d-001-a-fr-001",
    "openspec-change-c-proposal",
    "openspec-change-c-tasks-1.1",
    "openspec-change-c-tasks-1.2",
  ]);
  expect(project.specs.features().features.map(({ name, tool }) => `${tool} ${name}`)).toEqual([
    "OpenSpec auth",
    "OpenSpec c",
    "Spec Kit 001-a",
  ]);
  await project.close();
});
