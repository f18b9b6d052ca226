import fc from "fast-check";
import { expect, test } from "vitest";
import { mergeSection } from "./convert/convert-guideline.ts";
import {
  managedFileOf,
  managedPartOf,
  markFile,
  putManagedPart,
  removeManagedPart,
  scanShared,
  withoutMark,
} from "./kit-marks.ts";
import { readGuidelines } from "./read-guidelines.ts";

const partOf = (text: string) => managedPartOf(scanShared(text));

test("a part is added at the end, replaced in place and removed without a trace", () => {
  const own = "# Shop\n\nRead this.\n\n## Own\n\nmine\n";
  const first = putManagedPart(own, "## Tests\n\nBe good.", "agents");
  expect(first.startsWith(`${own}\n<!-- kit:sync source=agents sha256=`)).toBe(true);
  expect(partOf(first)).toMatchObject({ source: "agents", isIntact: true });
  const extended = `${first}\nWritten below by hand.\n`;
  const second = putManagedPart(extended, "## Tests\n\nBe better.", "agents");
  expect(second).toContain("Be better.\n\n<!-- /kit:sync -->\n\nWritten below by hand.\n");
  expect(second).not.toContain("Be good");
  expect(putManagedPart(second, "## Tests\n\nBe better.", "agents")).toBe(second);
  expect(removeManagedPart(first)).toBe(own);
  expect(removeManagedPart(extended)).toBe(`${own}\nWritten below by hand.\n`);
});

test("line ends are those of the file, and changed line ends are no edit", () => {
  const windows = putManagedPart("# A\r\n\r\nx\r\n", "## B\n\ny", "agents");
  expect(windows.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
  expect(partOf(windows)).toMatchObject({ isIntact: true });
  expect(partOf(windows.replaceAll("\r\n", "\n"))).toMatchObject({ isIntact: true });
});

test("an edit inside is noticed, and a mark without its partner is damage", () => {
  const text = putManagedPart("", "## B\n\ny", "steering");
  expect(partOf(text.replace("\ny", "\nz"))).toMatchObject({ isIntact: false });
  expect(partOf(text.replace("<!-- /kit:sync -->", ""))).toBe("damaged");
  expect(partOf(text.replace(/sha256=\w+/, ""))).toBe("damaged");
  expect(partOf(text + text)).toBe("damaged");
  expect(partOf("```\n<!-- kit:sync source=agents sha256=0123456789abcdef -->\n```\n")).toBeUndefined();
});

test("the text of a part is managed, the text around it is not", () => {
  const text = `${putManagedPart("# A\n\nintro\n\n## Own\nmine\n", "## B\n\ny\n\n## C\n\n- z", "agents")}\nafter\n`;
  const { records } = readGuidelines({ path: "CLAUDE.md", text });
  expect(records.map(({ title, content, managed }) => [title, content, managed])).toEqual([
    ["A", "intro", undefined],
    ["Own", "mine", undefined],
    ["B", "y", "agents"],
    ["C", "- z", "agents"],
    ["CLAUDE.md", "after", undefined],
  ]);
});

test("a merge replaces the section before a part without its mark, and leaves the part alone", () => {
  const text = putManagedPart("## Own\n\nmine\n", "## B\n\ny", "agents");
  const merged = mergeSection(text, { title: "Own", content: "new", globs: [] });
  expect(merged).toBe(text.replace("mine", "new"));
  expect(() => mergeSection(text, { title: "B", content: "new", globs: [] })).toThrow("kit guidelines sync");
});

test("a file is marked in its front matter, which the tools do not show", () => {
  const text = "---\nglobs: *.ts\n---\n# A\n\nx\n";
  const marked = markFile(text, "agents");
  expect(managedFileOf(marked)).toMatchObject({ source: "agents", isIntact: true });
  expect(withoutMark(marked)).toBe(text);
  expect(managedFileOf(marked.replaceAll("\n", "\r\n"))).toMatchObject({ isIntact: true });
  expect(managedFileOf(marked.replace("x", "y"))).toMatchObject({ isIntact: false });
  expect(managedFileOf(text)).toBeUndefined();
  const { records } = readGuidelines({ path: ".cursor/rules/a.mdc", text: marked });
  expect(records).toMatchObject([{ title: "A", content: "x", globs: ["*.ts"], managed: "agents" }]);
});

test("putting a part twice is putting it once in any file, and removing it leaves the rest", () => {
  const pieces = fc.constantFrom(
    "# A\n",
    "## B\n",
    "text\n",
    "\n",
    "\r\n",
    "- x\n",
    "  \n",
    " ",
    "<!-- c -->\n",
  );
  const texts = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(texts, texts, (text, body) => {
      fc.pre(body.trim() !== "");
      const once = putManagedPart(text, body.trim(), "fw_b");
      expect(putManagedPart(once, body.trim(), "fw_b")).toBe(once);
      expect(once.startsWith(text)).toBe(true);
      const rest = removeManagedPart(once);
      expect(rest.trimEnd()).toBe(text.trimEnd());
    }),
  );
});
