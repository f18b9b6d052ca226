import type { GuidelineDraft } from "./adapter.ts";
import { assignGuidelineIds, type GuidelineRecord } from "./guideline-record.ts";

interface Sample {
  readonly title: string;
  readonly tags: readonly string[];
  readonly globs?: readonly string[];
  readonly lines: readonly string[];
}

const samples: readonly Sample[] = [
  {
    title: "Error messages",
    tags: ["errors"],
    lines: [
      "- Say what was expected, what was found, and what to do about it.",
      "- Name the thing by the name its user knows: the field, the file and line, the option.",
      "- Keep the original error as the cause; log it once, where it is handled.",
      "- Never show a stack trace, a secret or an absolute path to a reader outside the team.",
    ],
  },
  {
    title: "Tests",
    tags: ["testing"],
    globs: ["**/*.test.*", "**/*.spec.*", "**/test_*.py", "**/*_test.go"],
    lines: [
      "- Name a test after the behaviour it guards: `a second order with the same key is refused`.",
      "- Test through the public interface, so that a refactoring breaks no test.",
      "- One reason to fail per test. Build the data a test needs inside it; share builders, not state.",
      "- A bug is fixed together with the test that would have caught it.",
    ],
  },
  {
    title: "Functions and names",
    tags: ["style"],
    lines: [
      "- A function does one thing on one level of detail, and fits on a screen.",
      "- Names say what a thing is for. Spell words out; booleans read as statements (`isOpen`, `hasRights`).",
      "- Return early instead of nesting. No flag parameters: two names are clearer than one switch.",
      "- A comment says why; what the code does is for the code to say.",
    ],
  },
  {
    title: "TypeScript",
    tags: ["typescript"],
    globs: ["**/*.ts", "**/*.tsx"],
    lines: [
      "- `strict` is on. No `any`: take `unknown` and narrow it where data enters.",
      "- Model states as discriminated unions, so that wrong combinations cannot be written.",
      "- `readonly` by default; exported functions state their return type.",
    ],
  },
  {
    title: "Secrets and input",
    tags: ["security"],
    lines: [
      "- Secrets come from the environment. They are in no file, no log line and no error message.",
      "- Whatever comes from outside is checked against a schema once, at the edge.",
      "- Queries are parameterised, commands are lists of arguments, output is escaped for where it goes.",
      "- A new dependency needs a reason, an exact version and a look at what it pulls in.",
    ],
  },
  {
    title: "Commits",
    tags: ["git"],
    lines: [
      "- One idea per commit; every commit builds and passes its tests.",
      "- The subject is an order of at most 72 characters: `Refuse an order without items`.",
      "- The body says why, and what else was considered. The diff already says what.",
    ],
  },
];

/** The guidelines shown for a project without any. */
export function sampleRecords(): GuidelineRecord[] {
  return assignGuidelineIds("samples.md", samples.map(toDraft));
}

function toDraft({ title, tags, globs, lines }: Sample): GuidelineDraft {
  return {
    title,
    content: lines.join("\n"),
    source_type: "sample",
    tool: "agents",
    tags,
    inclusion: globs === undefined ? "always" : "pattern",
    globs: globs ?? [],
    scope: "",
    frontmatter: {},
    span: { start_line: 1, end_line: lines.length },
    imports: [],
    whole_file: false,
  };
}

/** The guidelines of a project, or the samples where it has none. */
export function withSamples(records: readonly GuidelineRecord[]): readonly GuidelineRecord[] {
  return records.length > 0 ? records : sampleRecords();
}
