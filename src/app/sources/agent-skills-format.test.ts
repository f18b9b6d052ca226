import { readFileSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { runKit } from "../../cli/testing/run-kit.ts";
import { faultOfSkillName } from "../../guidelines/skills/skill-format.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { loadSkill } from "../service/open-service.ts";
import { loadSkills } from "./load-skills.ts";

/** Applies every rule of the specification to the letter, as a strict reader of another vendor does. */
function strictProblems(file: string, text: string): string[] {
  const [, front = ""] = /^---\n([\s\S]*?)\n---\n/.exec(text) ?? [];
  const data: Record<string, unknown> = parse(front) ?? {};
  const allowed = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
  const problems = Object.keys(data).filter((key) => !allowed.includes(key));
  const name = String(data.name);
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) || name.length > 64) problems.push("name");
  if (name !== basename(dirname(file))) problems.push("folder");
  const { description, metadata = {} } = data;
  if (typeof description !== "string" || description.length < 1 || description.length > 1024)
    problems.push("description");
  for (const value of Object.values(metadata as object))
    if (typeof value !== "string") problems.push("metadata");
  return problems;
}

const skill = (fields: string): string => `---\n${fields}\n---\nDo.\n`;
const described = (name: string): string => skill(`name: ${name}\ndescription: Does.`);

async function skillsOf(files: Readonly<Record<string, string>>) {
  await using folder = await createTemporaryRepository(files);
  return await loadSkills(folder.root);
}

test("a skill that kit writes is valid for every reader of the format", async () => {
  await using folder = await createTemporaryRepository({});
  const long = ["--description", `Says "so": it's fine. ${"x".repeat(900)}`];
  await runKit(["skill", "new", "release-notes", ...long], { cwd: folder.root });
  await runKit(["init", "."], { cwd: folder.root });
  const example = join(import.meta.dirname, "../../../examples/agents");
  const files = [
    join(folder.root, ".agents/skills/release-notes/SKILL.md"),
    join(folder.root, ".agents/skills/explain-file/SKILL.md"),
    join(example, ".agents/skills/answer-letter/SKILL.md"),
  ];
  for (const file of files) expect(strictProblems(file, readFileSync(file, "utf8"))).toEqual([]);
  const { skills, problems } = await loadSkills(folder.root);
  expect(problems).toEqual([]);
  expect(skills.map(({ name, inputSchema }) => [name, inputSchema?.type])).toEqual([
    ["explain-file", "object"],
    ["release-notes", "object"],
  ]);
  expect((await loadSkills(example)).skills[0]?.outputSchema).toMatchObject({
    required: ["topic", "answer", "refund_cents"],
  });
});

test.each([
  ["a", undefined],
  ["a-b-1", undefined],
  ["a".repeat(64), undefined],
  ["a".repeat(65), "64 characters"],
  ["a--b", "two hyphens"],
  ["-a", "begin or end with a hyphen"],
  ["a-", "begin or end with a hyphen"],
  ["Review", "lowercase letters"],
  ["a_b", "lowercase letters"],
  ["naïve", "lowercase letters"],
])("%s as a skill's name: %s", (name, rule) => {
  if (rule === undefined) expect(faultOfSkillName(name)).toBeUndefined();
  else expect(faultOfSkillName(name)).toContain(rule);
});

test.each([
  ["its folder", "name: other\ndescription: x", 'must be the name of its folder, "a"'],
  ["capitals", "name: A\ndescription: x", "lowercase letters"],
  ["no description", "name: a", "no description"],
  ["a long description", `name: a\ndescription: ${"x".repeat(1025)}`, "1,024"],
  ["a long compatibility", `name: a\ndescription: x\ncompatibility: ${"x".repeat(501)}`, "500"],
  ["metadata that is not a map", "name: a\ndescription: x\nmetadata: text", "must be a map"],
  [
    "a misspelled key of kit",
    "name: a\ndescription: x\nmetadata: { kit-input-shema: '{}' }",
    "did you mean kit-input-schema",
  ],
])("a skill that departs in %s works, and file and rule are told", async (_name, fields, rule) => {
  const { skills, problems } = await skillsOf({ ".agents/skills/a/SKILL.md": skill(fields) });
  expect(skills).toHaveLength(1);
  expect(problems).toEqual([
    { path: ".agents/skills/a/SKILL.md", message: expect.stringContaining(rule), isHarmless: true },
  ]);
});

const schema = { type: "object", required: ["file"] };

test.each([
  ["JSON text under metadata", `metadata:\n  kit-input-schema: '${JSON.stringify(schema)}'`],
  ["YAML under metadata", "metadata:\n  kit-input-schema: { type: object, required: [file] }"],
  ["a file beside it", "metadata: { kit-input-schema: ./in.json }"],
  ["the field that kit wrote before", "input_schema: { type: object, required: [file] }"],
])("a schema is read from %s", async (_name, fields) => {
  const { skills, problems } = await skillsOf({
    ".agents/skills/a/SKILL.md": skill(`name: a\ndescription: x\n${fields}`),
    ".agents/skills/a/in.json": JSON.stringify(schema),
  });
  expect(problems).toEqual([]);
  expect(skills[0]?.inputSchema).toEqual(schema);
});

test.each([
  ["no JSON", "'{'", "must be a JSON Schema as JSON"],
  ["a list", "'[1]'", "must be a JSON Schema as JSON"],
  [
    "invalid",
    "{ required: file }",
    "`metadata.kit-input-schema` is not a valid JSON Schema: `required` must be",
  ],
  ["a file that is not there", "gone.json", "cannot be read"],
  ["a file outside of its folder", "../../secret.json", "cannot be read"],
])("a schema that is %s is a problem of its file", async (_name, value, message) => {
  const { skills, problems } = await skillsOf({
    ".agents/skills/a/SKILL.md": skill(`name: a\ndescription: x\nmetadata: { kit-input-schema: ${value} }`),
    ".agents/secret.json": "{}",
  });
  expect(skills).toEqual([]);
  expect(problems).toEqual([
    { path: ".agents/skills/a/SKILL.md", message: expect.stringContaining(message) },
  ]);
});

test("skills of other tools are read; of one name, .agents goes before .claude, and that before .github", async () => {
  const { skills, problems } = await skillsOf({
    ".agents/skills/a/SKILL.md": described("a"),
    ".claude/skills/a/SKILL.md": skill("name: a\ndescription: Another."),
    ".claude/skills/b/SKILL.md": described("b"),
    ".claude/skills/notes.md": "No skill of Claude Code.\n",
    ".github/skills/b/SKILL.md": skill("name: b\ndescription: Another."),
    ".github/skills/c/SKILL.md": described("c"),
    ".github/skills/c/reference.md": "Beside it.\n",
  });
  expect(skills.map(({ folder }) => folder)).toEqual([
    ".agents/skills/a",
    ".claude/skills/b",
    ".github/skills/c",
  ]);
  expect(problems).toEqual([
    {
      path: ".claude/skills/a/SKILL.md",
      message: 'Another skill is named "a" too. kit uses .agents/skills/a/SKILL.md and ignores this file.',
      isHarmless: true,
    },
    {
      path: ".github/skills/b/SKILL.md",
      message: 'Another skill is named "b" too. kit uses .claude/skills/b/SKILL.md and ignores this file.',
      isHarmless: true,
    },
  ]);
});

test("a skill that several tools share by a link or a copy counts as one skill", async () => {
  await using folder = await createTemporaryRepository({
    ".agents/skills/a/SKILL.md": described("a"),
    ".github/skills/a/SKILL.md": described("a"),
  });
  await mkdir(join(folder.root, ".claude"));
  await symlink("../.agents/skills", join(folder.root, ".claude/skills"));
  expect(await loadSkills(folder.root)).toMatchObject({ skills: [{ name: "a" }], problems: [] });
});

test("kit skill new refuses names and descriptions that the format refuses", async () => {
  await using folder = await createTemporaryRepository({});
  for (const name of ["Triage", "a--b", "a".repeat(65)]) {
    const { exitCode, stderr } = await runKit(["skill", "new", name], { cwd: folder.root });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("cannot be a skill's name")]);
  }
  const long = await runKit(["skill", "new", "a", "--description", "x".repeat(1025)], { cwd: folder.root });
  expect(long).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("1 to 1,024") });
  await expect(readFile(join(folder.root, ".agents/skills/a/SKILL.md"))).rejects.toThrow();
  await runKit(["skill", "new", "a"], { cwd: folder.root });
  expect(await loadSkill(".agents/skills/a", { root: folder.root })).toMatchObject({ name: "a" });
});
