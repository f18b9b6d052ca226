import fc from "fast-check";
import { expect, test } from "vitest";
import { scanMarkdown } from "./scan-markdown.ts";
import { listItemEnd, listItemText, toListItem } from "./segments.ts";

function itemOf(text: string): string {
  const scan = scanMarkdown(text);
  return listItemText(scan, 1, listItemEnd(scan, 1, scan.lineCount));
}

test("an item has its wrapped lines, paragraphs, nested lists and code", () => {
  expect(itemOf("- a\nlazy\n  b\n\n  c\n  - d\n\n  ```\n  e\n  ```\n- next")).toBe(
    "a\nlazy\nb\n\nc\n- d\n\n```\ne\n```",
  );
  expect(itemOf("12. a\n    b\n\tc")).toBe("a\nb\nc");
  expect(itemOf("-\n  a")).toBe("a");
});

test("an item ends at a sibling, a heading, a break, and text after a blank line", () => {
  for (const end of ["- b", " * b", "2) b", "# b", "---", "\nb", "\n```\nb\n```"])
    expect(itemOf(`- a\n${end}`)).toBe("a");
});

test("a written item reads back as the same text", () => {
  const line = fc.constantFrom(
    "a",
    "  b",
    "- c",
    "",
    "```",
    "code",
    "===",
    "---",
    "# d",
    "1. e",
    "\tf",
    "~~~",
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
      const text = itemOf(`- x\n${lines.map((each) => (each === "" ? "" : `  ${each}`)).join("\n")}`);
      expect(itemOf(toListItem("-", text))).toBe(text);
    }),
    { numRuns: 1000 },
  );
});
