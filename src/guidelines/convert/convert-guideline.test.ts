import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { filePatternOf, type GuidelineRecord } from "../guideline-record.ts";
import { readPatternLine, toPatternLine } from "../kit-marks.ts";
import { readGuidelines, sampleRecords, withSamples } from "../read-guidelines.ts";
import { exportGuidelines, guidelineFilename, toFrontMatter, toYamlScalar } from "./conversion-targets.ts";
import { convertGuideline, mergeSection, sourceOf } from "./convert-guideline.ts";

const readAll = (path: string, text: string) => readGuidelines({ path, text }).records;
const only = (path: string, text: string): GuidelineRecord => {
  const [record] = readAll(path, text);
  if (record === undefined) throw new Error(`${path} has no guideline.`);
  return record;
};
const essence = (record: GuidelineRecord) => [record.title, record.content, filePatternOf(record)];

test("a Cursor rule becomes a steering file with its pattern", () => {
  const record = only(
    ".cursor/rules/ts.mdc",
    "---\ndescription: d\nglobs: **/*.ts\n---\n# Use Const\n\nAlways.\n",
  );
  expect(convertGuideline(record, "steering")).toEqual({
    filename: "use-const.md",
    content: '---\ninclusion: fileMatch\nfileMatchPattern: "**/*.ts"\n---\n\n# Use Const\n\nAlways.\n',
    frontmatter: { inclusion: "fileMatch", fileMatchPattern: "**/*.ts" },
    source_id: record.id,
    losses: ["There is no place in a steering file for description of the front matter."],
  });
});

test("several globs become a list, and no glob is always included", () => {
  const several = convertGuideline(
    only(".cursor/rules/a.mdc", "---\nglobs: *.ts, *.js\n---\nx\n"),
    "steering",
  );
  expect(several.frontmatter).toEqual({ inclusion: "fileMatch", fileMatchPattern: ["*.ts", "*.js"] });
  expect(readAll(".kiro/steering/a.md", several.content)[0]?.globs).toEqual(["*.ts", "*.js"]);
  const none = convertGuideline(only("CLAUDE.md", "## A\nx\n"), "steering");
  expect(none).toMatchObject({
    content: "---\ninclusion: always\n---\n\n# A\n\nx\n",
    frontmatter: { inclusion: "always" },
    losses: [],
  });
});

test("a steering file becomes a section, and its losses are listed", () => {
  const text =
    "---\ninclusion: fileMatch\nfileMatchPattern: 'api/**'\n---\n# Api\n\nSee #[[file:api/spec.yaml]].\n";
  expect(convertGuideline(only("web/.kiro/steering/api.md", text), "fw_c")).toMatchObject({
    filename: "CLAUDE.md",
    content: "## Api\n\n_File pattern: `api/**`_\n\nSee #[[file:api/spec.yaml]].\n",
    frontmatter: {},
    losses: [
      "A section cannot be limited to api/** in CLAUDE.md; the pattern is kept as a line to read.",
      "The guideline applies to web only; in CLAUDE.md it applies to the whole project.",
      "References to api/spec.yaml are not followed in CLAUDE.md; they stay as text.",
    ],
  });
});

test("a conversion warns that a rule loaded on request is always loaded in the target", () => {
  const record = only(".cursor/rules/a.mdc", "---\ndescription: d\n---\nx\n");
  expect(convertGuideline(record, "fw_c").losses[0]).toMatch(/when the agent asks for it/);
  expect(convertGuideline({ ...record, inclusion: "manual" }, "steering").losses[0]).toMatch(/mentions it/);
});

test("a guideline converted to its own format is its source, byte for byte", () => {
  const rule = "\ufeff---\r\nglobs: *.ts\r\nodd : x\r\n---\r\n# A\r\ntext";
  const record = only(".cursor/rules/a.mdc", rule.slice(1));
  expect(convertGuideline(record, "fw_b", { sourceText: rule }).content).toBe(rule);
  const file = "\ufeff# T\r\n\r\nIntro\r\n\r\n## A ##\r\n\r\n text \r\n\r\n\r\n## B\r\n";
  const sections = readAll("CLAUDE.md", file.slice(1));
  const contents = sections.map((each) => convertGuideline(each, "fw_c", { sourceText: file }).content);
  expect(contents).toEqual(["# T\r\n\r\nIntro", "## A ##\r\n\r\n text ", "## B"]);
  const lonely = only("CLAUDE.md", "# Only\n\ntext\n");
  expect(sourceOf(lonely, "# Only\n\ntext\n")).toBe("# Only\n\ntext\n");
});

const adapterPaths = {
  fw_c: ["CLAUDE.md", "web/.claude/CLAUDE.md", ".claude/rules/api.md"],
  fw_b: [".cursorrules", ".cursor/rules/react.mdc", "web/.cursor/rules/deep/a.mdc"],
  steering: [".kiro/steering/a.md", "web/.kiro/steering/b.md"],
  copilot: [".github/copilot-instructions.md", ".github/instructions/a.instructions.md"],
  gemini: ["GEMINI.md", "web/GEMINI.md"],
  windsurf: [".windsurf/rules/a.md", ".windsurfrules"],
  cline: [".clinerules/a.md", ".clinerules"],
  zed: [".rules"],
} as const;
const heads = fc.constantFrom(
  "",
  "---\nglobs: *.ts\nodd : x\n---\n",
  "---\r\ninclusion: manual\r\n---\r\n",
  "\ufeff",
);

test("a guideline of every adapter, converted to its own format, is its source under its own name, without a loss", () => {
  const targets = Object.entries(adapterPaths).flatMap(([format, paths]) =>
    paths.map((path) => ({ format: format as keyof typeof adapterPaths, path })),
  );
  fc.assert(
    fc.property(fc.constantFrom(...targets), heads, bodies, (...[{ format, path }, head, body]) => {
      const sourceText = head + body;
      for (const record of readAll(path, sourceText.replace(/^\ufeff/, ""))) {
        const result = convertGuideline(record, format, { sourceText });
        expect(result.losses).toEqual([]);
        expect(result.filename).toBe(path.slice(path.lastIndexOf("/") + 1));
        expect(sourceText).toContain(result.content);
        if (record.whole_file) expect(result.content).toBe(sourceText);
      }
    }),
    { numRuns: rounds(200, 2_000) },
  );
});

test("relative links and imports of another folder are a loss", () => {
  const text = "---\nalwaysApply: true\n---\n# A\n\nSee [x](../../src/a.ts) and [y](https://x.org).\n";
  expect(convertGuideline(only(".cursor/rules/a.mdc", text), "fw_c").losses).toEqual([
    "Paths relative to .cursor/rules stay as they are: ../../src/a.ts.",
  ]);
  expect(convertGuideline(only("docs/CLAUDE.md", "See @x.md.\n"), "gemini").losses).toContain(
    "Paths relative to docs stay as they are: x.md.",
  );
});

test.each([
  ["Use Const!", "use-const.md"],
  ["Größe & Maß", "grosse-mass.md"],
  ["größer", "grosser.md"],
  ["STRASSE ẞ, Œuvre, Łódź, Ørsted, Þór", "strasse-ss-oeuvre-lodz-orsted-thor.md"],
  ["../../../outside/pwn", "outside-pwn.md"],
  ["日本語", "guideline.md"],
  ["", "guideline.md"],
  ["a".repeat(100), `${"a".repeat(60)}.md`],
  [`${"a".repeat(59)} b`, `${"a".repeat(59)}.md`],
])("the file name of %j is %s", (title, name) => {
  expect(guidelineFilename(title)).toBe(name);
});

test("front matter in a body stays body after conversion", () => {
  const record = only("CLAUDE.md", "# T\n\n---\ninclusion: always\nevil: yes\n---\n\nbody\n");
  const { content } = convertGuideline(record, "steering");
  expect(Object.keys(only(".kiro/steering/t.md", content).frontmatter)).toEqual(["inclusion"]);
  const hostile = only(
    ".kiro/steering/h.md",
    '---\ninclusion: fileMatch\nfileMatchPattern: "a\\"\\n---\\nevil: true\\n---\\n#"\n---\n# T\n',
  );
  expect(hostile.globs).toEqual(['a"\n---\nevil: true\n---\n#']);
  for (const format of ["steering", "fw_c", "fw_b"] as const) {
    const path = { steering: ".kiro/steering/x.md", fw_c: "CLAUDE.md", fw_b: ".cursorrules" }[format];
    const again = only(path, convertGuideline(hostile, format).content);
    expect(Object.keys(again.frontmatter)).not.toContain("evil");
    expect(again.globs).toEqual(hostile.globs);
  }
});

const bodies = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "# A",
        "## B",
        "### C",
        "text",
        "",
        "```",
        "~~~js",
        "<!-- open",
        "-->",
        "<div>",
        "<script>",
        "===",
        "---",
        "- item",
        "    code",
        "\ttab",
        "> quote",
        "_File pattern: `x`_",
        "<!-- kit:guideline -->",
        "<!-- /kit:guideline -->",
        "<!-- kit:guideline 2 -->",
        "<!-- /kit:guideline 2 -->",
        "C #",
        "## D #",
        "# E ##",
        "@a.md",
        "\u2028",
        "\u00a0",
      ),
      fc.string({ maxLength: 10 }),
    ),
    { maxLength: 12 },
  )
  .chain((lines) => fc.constantFrom("\n", "\r\n").map((end) => lines.join(end)));
const patterns = fc.option(
  fc.array(
    fc.oneof(
      fc.constantFrom("*.ts", "**/*.{ts,tsx}", "a`b", "`", "``a", '"q', "a\nb", " "),
      fc.string({ minLength: 1, maxLength: 6 }),
    ),
    { minLength: 1, maxLength: 3 },
  ),
);
const sources = fc
  .tuple(
    fc.constantFrom("CLAUDE.md", ".kiro/steering/a.md", ".cursor/rules/a.mdc", ".cursorrules", "AGENTS.md"),
    bodies,
    patterns,
  )
  .map(([path, body, globs]) => {
    const records = readAll(path, body);
    return globs === null ? records : records.map((record) => ({ ...record, globs }));
  });

test("reading an export returns the same titles, contents and file patterns", () => {
  fc.assert(
    fc.property(fc.array(sources, { maxLength: 4 }), (groups) => {
      const records = groups.flat();
      for (const format of ["fw_c", "fw_b"] as const) {
        const { filename, content } = exportGuidelines(records, format, "shop");
        const again = readAll(filename, content);
        // A file of its own that says nothing is one guideline without content.
        if (records.length > 0) expect(again.map(essence)).toEqual(records.map(essence));
      }
    }),
    { numRuns: rounds(300, 3_000) },
  );
});

test("a conversion to a steering file reads back the same", () => {
  fc.assert(
    fc.property(sources, (records) => {
      for (const record of records) {
        const { content, frontmatter } = convertGuideline(record, "steering");
        const again = only(".kiro/steering/x.md", content);
        expect([again.title, again.content, again.frontmatter]).toEqual([
          record.title,
          record.content,
          frontmatter,
        ]);
      }
    }),
    { numRuns: rounds(200, 2_000) },
  );
});

test("a merge replaces the section of the same heading and keeps every other byte", () => {
  const record = only("AGENTS.md", "## B\n\nnew\n");
  expect(mergeSection("# T\n\n## A\nx\n\n## B\nold\n\n### deep\n\n## C\ny", record)).toBe(
    "# T\n\n## A\nx\n\n## B\n\nnew\n\n## C\ny",
  );
  expect(mergeSection("## B\nold\n## C", record)).toBe("## B\n\nnew\n\n## C");
  expect(mergeSection("\ufeff# T\r\n\r\n## A\r\nx\r\n", record)).toBe(
    "\ufeff# T\r\n\r\n## A\r\nx\r\n\r\n## B\r\n\r\nnew\r\n",
  );
  expect(mergeSection("", record)).toBe("## B\n\nnew\n");
  expect(mergeSection("x", record)).toBe("x\n\n## B\n\nnew\n");
  expect(mergeSection("x\n\n", record)).toBe("x\n\n## B\n\nnew\n");
  expect(() => mergeSection("# T\n```\nopen\n", record)).toThrow(/open/);
});

test("a merge changes nothing but its section, and merging twice changes nothing more", () => {
  fc.assert(
    fc.property(bodies, sources, (text, records) => {
      for (const record of records) {
        let merged: string;
        try {
          merged = mergeSection(text, record);
        } catch (error) {
          expect(error).toMatchObject({ code: "conflict" });
          continue;
        }
        expect(mergeSection(merged, record)).toBe(merged);
        const before = readAll("AGENTS.md", text).filter(
          (each) => each.title !== record.title && !each.whole_file,
        );
        const after = readAll("AGENTS.md", merged).map((each) => each.title);
        expect(after).toEqual(expect.arrayContaining(before.map((each) => each.title)));
      }
    }),
    { numRuns: rounds(200, 2_000) },
  );
});

test("a pattern line reads back, and prose is not a pattern line", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom("`", " a", '"', "a``b")), (pattern) => {
      expect(readPatternLine(toPatternLine(pattern))?.join(",")).toBe(pattern);
    }),
  );
  expect(readPatternLine("File pattern: `a`")).toBeUndefined();
  expect(readPatternLine("**Applies to:** `a`")).toBeUndefined();
});

test("samples are for projects without guidelines, and export only then", () => {
  const own = readAll("CLAUDE.md", "## A\nx\n");
  expect(withSamples(own)).toEqual(own);
  const samples = withSamples([]);
  expect(samples.map((record) => record.title)).toContain("Tests");
  expect(new Set(samples.map((record) => record.id)).size).toBe(samples.length);
  expect(exportGuidelines([...sampleRecords(), ...own], "fw_c", "shop").content).toBe(
    "# shop guidelines\n\n## A\n\nx\n",
  );
  expect(readAll("CLAUDE.md", exportGuidelines(samples, "fw_c", "shop").content).map(essence)).toEqual(
    samples.map(essence),
  );
});

test("plain words stay plain, everything else is quoted", () => {
  expect(toYamlScalar("fileMatch")).toBe("fileMatch");
  expect(toYamlScalar("yes")).toBe('"yes"');
  expect(toYamlScalar("*.ts")).toBe('"*.ts"');
  expect(toYamlScalar("a: b")).toBe('"a: b"');
  expect(toYamlScalar("")).toBe('""');
});

const texts = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "---",
    "a\n---\nevil: true",
    "\u0085",
    "\ud800",
    "\ufeff",
    "null",
    "1.5",
    "~",
    "# x",
    "{a}",
    "- a",
    "'",
    "é",
  ),
);

test("a written value reads back the same, in YAML and in kit", () => {
  fc.assert(
    fc.property(texts, fc.array(texts, { minLength: 1 }), fc.boolean(), (...[name, paths, alwaysApply]) => {
      const block = toFrontMatter({ name, paths, fileMatchPattern: name, alwaysApply });
      const expected = { name, paths, fileMatchPattern: name, alwaysApply };
      const inside = block.slice(4, -4);
      expect(parse(inside)).toEqual(expected);
      const read = readFrontMatter(scanMarkdown(`${block}\n# T\n`));
      expect(read.data).toEqual(expected);
      expect(read.problems).toEqual([]);
    }),
    { numRuns: rounds(200, 2_000) },
  );
});
