import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { toolTable } from "./tool-table.ts";

test("the documentation has the table as the code has it", () => {
  const page = readFileSync("docs/guidelines.md", "utf8");
  const rows = toolTable.map(({ name, label, reads, order, limits, user, version, source }) => {
    const files = reads
      .map(({ files: glob, at, when }) => {
        const notes = [...(at === "root" ? ["root"] : []), ...(when === undefined ? [] : [when])];
        return `\`${glob}\`${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`;
      })
      .join(", ");
    const bounds = limits.map(({ files: glob, max, unit, per }) =>
      per === "total"
        ? ` ${max.toLocaleString("en")} ${unit} in all.`
        : ` ${max.toLocaleString("en")} ${unit} of each \`${glob}\`.`,
    );
    const own = user.map(({ path }) => `\`~/${path}\``).join(", ") || "–";
    return `| ${label} (\`${name}\`) | ${files} | ${order}${bounds.join("")} | ${own} | [${version}](${source}) |`;
  });
  if (process.env.KIT_PRINT_TABLE) process.stdout.write(`${rows.join("\n")}\n`);
  for (const row of rows) expect(page).toContain(row);
});
