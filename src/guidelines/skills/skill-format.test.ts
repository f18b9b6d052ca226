import { expect, test } from "vitest";
import { allowedToolsOf, faultsOfSkill, lintSkills } from "./skill-format.ts";

const skill = (fields: string): string => `---\n${fields}\n---\nDo.\n`;
const faults = (text: string, folder = "a"): readonly string[] =>
  faultsOfSkill(text, folder).map(({ line, message }) => `${line} ${message}`);

test("a skill that uses every key of the format is valid", () => {
  const fields = [
    'name: a\ndescription: "Does: it."\nlicense: MIT\ncompatibility: git # any',
    'metadata:\n  version: "1.0"\n  since: 2026\nallowed-tools: Bash(git:*) Read',
  ];
  expect(faults(skill(fields.join("\n")))).toEqual([]);
  expect(faults(skill("name: a\ndescription: >\n  Does\n  it.").replaceAll("\n", "\r\n"))).toEqual([]);
  expect(faults(skill("name: 技能-1\ndescription: x"), "技能-1")).toEqual([]);
  expect(faults(skill("name: 123\ndescription: 5"), "123")).toEqual([]);
});

test.each([
  ["Do.", "1 It does not begin with front matter"],
  ["\ufeff---\nname: a\n---\n", "1 It begins with a byte order mark"],
  ["---\nname: a\n", "1 Its front matter is never closed"],
  [skill("- a"), "1 Its front matter has no keys and values."],
  [skill("name: a\ndescription: Use this: when"), "3 Its front matter is not YAML"],
  [skill("name: a\ndescription: x\nmetadata: { a: b }"), "4 Its front matter has { } or [ ]"],
  [skill("name: a\ndescription: x\nmetadata: &m\n  a: b"), "Its front matter has an anchor"],
  [skill("name: a\ndescription: !!str x"), "3 Its front matter has a tag"],
  [skill("name: a\nname: a\ndescription: x"), '3 Its front matter has the key "name" twice.'],
  [skill("description: x"), "1 It has no name."],
  [skill("name:\ndescription: x"), "2 It has an empty name."],
  [skill("name: a"), "1 It has no description."],
  [skill('name: a\ndescription: " "'), "3 It has an empty description."],
  [skill(`name: a\ndescription: ${"x".repeat(1025)}`), "3 It has a description of 1025 characters"],
  [skill("name: a\ndescription:\n  - x"), "3 It has a description that is not a text."],
  [skill(`name: a\ndescription: x\ncompatibility: ${"x".repeat(501)}`), "4 It has a compatibility of 501"],
  [
    skill("name: a\ndescription: x\nversion: 1"),
    '4 "version" is no key of the format: put it below metadata.',
  ],
  [skill("name: A\ndescription: x"), '2 It has the name "A", which may hold only lowercase letters'],
  [skill("name: ../x\ndescription: x"), "which may hold only lowercase letters"],
  [skill("name: a--b\ndescription: x"), "two hyphens in a row"],
  [skill("name: -a\ndescription: x"), "begin or end with a hyphen"],
  [skill(`name: ${"a".repeat(65)}\ndescription: x`), "at most 64 characters"],
  [skill("name: b\ndescription: x"), 'must be the name of its folder, "a"'],
])("%j: %s", (text, message) => {
  expect(faults(text).join("\n")).toContain(message);
});

test("hostile front matter ends in a finding, in time", () => {
  const started = performance.now();
  for (const text of [
    skill(`a: ${"[".repeat(10_000)}`),
    skill(Array.from({ length: 3_000 }, (_, index) => `k${index}: 1`).join("\n")),
    skill(`a: &a [x]\n${"b: [*a, *a]\n".repeat(500)}`),
    `---\n${"\n".repeat(100_000)}`,
  ])
    expect(faults(text).length).toBeGreaterThan(0);
  expect(performance.now() - started).toBeLessThan(5_000);
});

test("lint reads the skills of every tool, and the copies of one skill once", () => {
  const texts: Record<string, string> = {
    ".agents/skills/a/SKILL.md": skill("name: b\ndescription: x"),
    ".claude/skills/a/SKILL.md": skill("name: b\ndescription: x"),
    "packages/web/.kiro/skills/group/c/SKILL.md": skill("name: c"),
    "docs/SKILL.md": "Not a skill.",
  };
  const found = lintSkills({ files: Object.keys(texts), readText: (path) => texts[path] });
  expect(found.map(({ path, rule, line }) => [path, rule, line])).toEqual([
    [".agents/skills/a/SKILL.md", "skill-format", 2],
    ["packages/web/.kiro/skills/group/c/SKILL.md", "skill-format", 1],
  ]);
});

test.each([
  ["Bash(git push *) Read", "Read, Bash(git push *)"],
  [
    "\n  - Bash(npm run test:*)\n  - Read\n  - Bash(*)\n  - Bash(sh:*)",
    "Bash(*), Read, Bash(sh:*), Bash(npm run test:*)",
  ],
  ["Read, Bash, Read", "Bash, Read"],
])("the tools that a skill asks for begin with the broadest: %j", (written, text) => {
  expect(allowedToolsOf(skill(`name: a\nallowed-tools: ${written}`))).toEqual({ text, isCut: false });
});

test("a long list of tools cannot hide a broad one, and its text ends with how many it leaves out", () => {
  const narrow = Array.from({ length: 14 }, (_, at) => `Bash(git log${at}:*)`);
  const tools = allowedToolsOf(skill(`name: a\nallowed-tools: ${narrow.join(", ")}, Read, Bash(*)`));
  expect(tools?.isCut).toBe(true);
  expect(tools?.text).toMatch(/^Bash\(\*\), Read, Bash\(git log0:\*\), .* and 4 more: read the file$/);
  const long = allowedToolsOf(skill(`name: a\nallowed-tools: Bash(${"x".repeat(300)}, Bash(*)`));
  expect(long).toMatchObject({ isCut: true, text: expect.stringMatching(/x… and 1 more: read the file$/) });
  expect(allowedToolsOf(skill("name: a\nallowed-tools: ' '"))).toBeUndefined();
});
