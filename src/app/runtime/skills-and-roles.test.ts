import { mkdirSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { loadSkill } from "../service/open-service.ts";
import { loadRoles } from "../sources/load-roles.ts";
import { loadSkills } from "../sources/load-skills.ts";

async function skillsOf(files: Readonly<Record<string, string>>): ReturnType<typeof loadSkills> {
  await using folder = await createTemporaryRepository(files);
  return await loadSkills(folder.root);
}

async function rolesOf(files: Readonly<Record<string, string>>): ReturnType<typeof loadRoles> {
  await using folder = await createTemporaryRepository(files);
  return await loadRoles(folder.root);
}

test("a skill is a file, or a folder with a SKILL.md and other files, at any depth", async () => {
  const { skills, problems } = await skillsOf({
    ".agents/skills/notes.md": "Write notes.\n",
    ".agents/skills/review/SKILL.md":
      "---\ndescription: Reviews.\ninput_schema: { type: object, required: [file] }\noutput_schema: { type: object }\n---\nReview it.\n",
    ".agents/skills/review/checklist.md": "- look\n",
    ".agents/skills/team/release/SKILL.md": "---\nname: ship\ndescription: Ships.\n---\n\nShip it.\n",
    ".agents/skills/team/README.txt": "no skill",
  });
  // A name that is not its folder's works here, and nowhere else.
  expect(problems).toEqual([
    {
      path: ".agents/skills/team/release/SKILL.md",
      message: 'The name "ship" must be the name of its folder, "release".',
      isHarmless: true,
    },
  ]);
  expect(skills).toEqual([
    { name: "notes", description: "", instructions: "Write notes.", file: ".agents/skills/notes.md" },
    {
      name: "review",
      description: "Reviews.",
      instructions: "Review it.",
      inputSchema: { type: "object", required: ["file"] },
      outputSchema: { type: "object" },
      folder: ".agents/skills/review",
      file: ".agents/skills/review/SKILL.md",
    },
    {
      name: "ship",
      description: "Ships.",
      instructions: "Ship it.",
      folder: ".agents/skills/team/release",
      file: ".agents/skills/team/release/SKILL.md",
    },
  ]);
});

test.each([
  ["no instructions", "---\nname: a\n---\n", "it has no instructions"],
  ["a name that is none", "---\nname: 7\n---\nDo.\n", "`name` must be a text"],
  ["a schema that is a list", "---\ninput_schema: [a]\n---\nDo.\n", "`input_schema` must be a JSON Schema"],
  [
    "a schema that is a text",
    "---\noutput_schema: object\n---\nDo.\n",
    "`output_schema` must be a JSON Schema",
  ],
  [
    "an invalid schema",
    "---\ninput_schema: { type: objekt }\n---\nDo.\n",
    "`input_schema` is not a valid JSON Schema: `type` must be one of",
  ],
  ["a misspelled key", "---\ninput_shema: {}\n---\nDo.\n", "did you mean input_schema?"],
  ["front matter that is not YAML", "---\na: [\n---\nDo.\n", "bad.md, line"],
])("a skill with %s is a problem, and the others work", async (_name, text, message) => {
  const { skills, problems } = await skillsOf({
    ".agents/skills/bad.md": text,
    ".agents/skills/good.md": "Do.\n",
  });
  expect(skills.map(({ name }) => name)).toEqual(["good"]);
  expect(problems).toEqual([{ path: ".agents/skills/bad.md", message: expect.stringContaining(message) }]);
});

test("keys of other tools are ignored", async () => {
  const { skills } = await skillsOf({
    ".agents/skills/a/SKILL.md":
      "---\nname: a\nlicense: MIT\nallowed-tools: Read\nmetadata: { by: us }\n---\nDo.\n",
  });
  expect(skills).toHaveLength(1);
});

test("the first of two skills with one name counts, and the other is named", async () => {
  const { skills, problems } = await skillsOf({
    ".agents/skills/a.md": "---\nname: same\n---\nOne.\n",
    ".agents/skills/b.md": "---\nname: same\n---\nTwo.\n",
  });
  expect(skills.map(({ instructions }) => instructions)).toEqual(["One."]);
  expect(problems).toEqual([{ path: ".agents/skills/b.md", message: 'Another skill is named "same" too.' }]);
});

test("loadSkill accepts a file or a folder, and throws the reason for an invalid one", async () => {
  await using folder = await createTemporaryRepository({
    "skills/x/SKILL.md": "Do x.\n",
    "skills/big.md": "",
  });
  await folder.write("skills/big.md", "x".repeat(1_100_000));
  mkdirSync(join(folder.root, "skills/odd.md"));
  const { root } = folder;
  expect(await loadSkill("skills/x", { root })).toMatchObject({ name: "x", folder: "skills/x" });
  expect(await loadSkill(join(root, "skills/x/SKILL.md"))).toMatchObject({
    name: "x",
    instructions: "Do x.",
  });
  await expect(loadSkill("skills/gone", { root })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(loadSkill("skills/big.md", { root })).rejects.toThrow("big.md is larger than 1 MiB.");
  await expect(loadSkill("skills/odd.md", { root })).rejects.toThrow("skills/odd.md is a folder.");
});

test("a role is a file in any folder, with an optional model and thinking level", async () => {
  const { roles, problems } = await rolesOf({
    ".agents/roles/careful.md":
      "---\ndescription: Checks.\nmodel: local/m\nthinking_level: high\n---\nChange little.\n",
    ".agents/roles/sure.md": "---\nmodel: [local/m, local/n]\n---\nBe sure.\n",
    ".agents/roles/team/terse.md": "Say little.\n",
    ".agents/roles/fast.md": "---\nthinking_level: off\n---\n",
  });
  expect(problems).toEqual([]);
  expect(roles).toEqual([
    {
      name: "careful",
      description: "Checks.",
      instructions: "Change little.",
      model: "local/m",
      thinkingLevel: "high",
      file: ".agents/roles/careful.md",
    },
    { name: "fast", description: "", instructions: "", thinkingLevel: "off", file: ".agents/roles/fast.md" },
    {
      name: "sure",
      description: "",
      instructions: "Be sure.",
      model: ["local/m", "local/n"],
      file: ".agents/roles/sure.md",
    },
    { name: "terse", description: "", instructions: "Say little.", file: ".agents/roles/team/terse.md" },
  ]);
});

test.each([
  ["an unknown thinking level", "---\nthinking_level: deep\n---\nX\n", "must be one of off, minimal, low"],
  ["a model that is not text", "---\nmodel: 7\n---\nX\n", "`model` must be a text"],
  [
    "a list of no models",
    "---\nmodel: []\n---\nX\n",
    "`model` must be a text such as provider/model, or a list",
  ],
  ["a list of what are no models", "---\nmodel: [a/b, 7]\n---\nX\n", "or a list of such texts"],
  ["a misspelled key", "---\nthinking_levl: high\n---\nX\n", "did you mean thinking_level?"],
  ["nothing in it", "", "it says nothing"],
])("a role with %s is a problem, and the others work", async (_name, text, message) => {
  const { roles, problems } = await rolesOf({
    ".agents/roles/bad.md": text,
    ".agents/roles/good.md": "Do.\n",
  });
  expect(roles.map(({ name }) => name)).toEqual(["good"]);
  expect(problems).toEqual([{ path: ".agents/roles/bad.md", message: expect.stringContaining(message) }]);
});

test("any file is a skill or a problem, and never an exception", async () => {
  await using folder = await createTemporaryRepository({ ".agents/skills/x.md": "" });
  const part = fc.constantFrom(
    "---\n",
    "name: ",
    "[",
    "{",
    "&a ",
    "*a",
    "\n",
    ": ",
    "\uFEFF",
    "x",
    "- ",
    "!!js ",
    "\u0000",
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 30 }), async (parts) => {
      await folder.write(".agents/skills/x.md", parts.join(""));
      const { skills, problems } = await loadSkills(folder.root);
      expect(skills.length + problems.length).toBe(1);
    }),
    { numRuns: 200 },
  );
});

const hostileNames: readonly (readonly [string, string, string])[] = [
  ["a path", "../../evil", "separators, dot segments"],
  ["a separator", "a/b", "separators"],
  ["a backslash", "a\\\\b", "separators"],
  ["a dot segment", "..", "dot segments"],
  ["a line break", "a\\nb", "control characters"],
  ["a terminal escape", "a\\u001b[2J", "control characters"],
  ["a mark of direction", "safe\\u202egnp", "text direction"],
  ["a byte order mark inside", "a\\ufeffb", "text direction"],
  ["an invisible sign", "a\\u200bb", "must begin with a letter or a digit, and hold only"],
  ["the prototype", "__proto__", "must begin with a letter or a digit"],
  ["no letters", "", "must not be empty"],
  ["a space at its end", "a ", "must begin with a letter or a digit, and hold only"],
  ["200 letters", "a".repeat(200), "at most 128 bytes"],
];

test.each(hostileNames)(
  "a skill or role whose name is or holds %s is a problem that names file and rule",
  async (_name, name, rule) => {
    const text = `---\nname: "${name}"\ndescription: x\n---\nDo.\n`;
    const { skills, problems } = await skillsOf({
      ".agents/skills/a/SKILL.md": text,
      ".agents/skills/b.md": "Do.\n",
    });
    expect(skills.map((skill) => skill.name)).toEqual(["b"]);
    const message = expect.stringContaining(rule);
    expect(problems).toEqual([{ path: ".agents/skills/a/SKILL.md", message }]);
    const read = await rolesOf({ ".agents/roles/a.md": text, ".agents/roles/b.md": "Be.\n" });
    expect(read.roles.map((role) => role.name)).toEqual(["b"]);
    expect(read.problems).toEqual([{ path: ".agents/roles/a.md", message }]);
    for (const { message: reported } of [...problems, ...read.problems])
      expect(reported).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  },
);

test("a skill or role whose name differs from another only in case is a problem", async () => {
  const file = (name: string): string => `---\nname: ${name}\n---\nDo.\n`;
  const { skills, problems } = await skillsOf({
    ".agents/skills/a.md": file("Review"),
    ".agents/skills/b.md": file("review"),
  });
  expect(skills.map(({ name }) => name)).toEqual(["Review"]);
  expect(problems).toMatchObject([
    { path: ".agents/skills/b.md", message: expect.stringContaining("in case only") },
  ]);
});

test("linked skills and roles are read inside the project; a link out of it or in a circle is a problem", async () => {
  await using folder = await createTemporaryRepository({
    "elsewhere/a/SKILL.md": "---\ndescription: Does.\n---\nDo.\n",
    "roles/r.md": "Be.\n",
    ".agents/skills/mine.md": "Do.\n",
  });
  await using other = await createTemporaryRepository({
    "evil/SKILL.md": "Do evil.\n",
    "evil.md": "TOP-SECRET\n",
  });
  const at = (path: string): string => join(folder.root, ".agents", path);
  await symlink("../../elsewhere/a", at("skills/inside"));
  await symlink(join(other.root, "evil"), at("skills/outside"));
  await symlink(join(other.root, "evil.md"), at("skills/leak.md"));
  await symlink(".", at("skills/one"));
  await symlink(".", at("skills/two"));
  await symlink("/", at("skills/all"));
  await symlink("../roles", at("roles"));
  const { skills, problems } = await loadSkills(folder.root);
  expect(skills.map(({ name }) => name)).toEqual(["inside", "mine"]);
  expect(problems.map(({ path, message }) => [path, message]).sort()).toEqual([
    [".agents/skills/all", ".agents/skills/all leads out of the project."],
    [".agents/skills/leak.md", ".agents/skills/leak.md leads out of the project."],
    [".agents/skills/one", ".agents/skills/one is .agents/skills under another name."],
    [".agents/skills/outside", ".agents/skills/outside leads out of the project."],
    [".agents/skills/two", ".agents/skills/two is .agents/skills under another name."],
  ]);
  expect((await loadRoles(folder.root)).roles.map(({ name }) => name)).toEqual(["r"]);
  const leak = loadSkill(".agents/skills/leak.md", { root: folder.root });
  await expect(leak).rejects.toThrow(".agents/skills/leak.md leads out of the project.");
});
