import { execFile } from "node:child_process";
import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listFiles, repositoryRoot } from "../scripts/files.ts";
import { readMarkdownPage } from "../scripts/markdown-page.ts";
import { runKit } from "../src/cli/testing/run-kit.ts";
import { testFolder } from "../src/testing/test-folder.ts";

const run = promisify(execFile);
const pages = [join(repositoryRoot, "README.md"), ...(await listFiles(join(repositoryRoot, "docs")))];
const lines = (await Promise.all(pages.map(commandLines))).flat();
const shop = testFolder(afterAll);

// The commands of the documentation work on the example, so they run on a copy of it with a history.
beforeAll(async () => {
  await cp(join(repositoryRoot, "examples/shop"), shop, { recursive: true });
  await rm(join(shop, ".kit"), { recursive: true, force: true });
  const git = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
  await run("git", ["init", "--quiet", "--initial-branch=main"], { cwd: shop });
  await run("git", ["add", "--all"], { cwd: shop });
  await run("git", [...git, "commit", "--quiet", "--message", "All of it"], { cwd: shop });
  await run("git", [...git, "commit", "--quiet", "--allow-empty", "--message", "Nothing"], { cwd: shop });
  const report =
    '<testsuite><testcase name="charges once" file="src/checkout/checkout.test.ts"/></testsuite>';
  await writeFile(join(shop, "junit.xml"), report);
});

test("the documentation contains commands", () => {
  expect(lines.length).toBeGreaterThan(15);
});

test.each(lines)("$place: $line", async ({ words }) => {
  const redirect = words.indexOf(">");
  const [args, file] = redirect === -1 ? [words] : [words.slice(0, redirect), words[redirect + 1]];
  const { exitCode, stdout, stderr } = await runKit(args, { cwd: shop });
  if (file !== undefined) await writeFile(join(shop, file), stdout);
  // Exit code 1 reports findings, and 3 a question, so they pass. 2 would mean an unknown command or option.
  expect([0, 1, 3], stderr).toContain(exitCode);
  expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
});

/** Returns the lines of `sh` fences that call kit, without the commands that serve until they are stopped. */
async function commandLines(
  file: string,
): Promise<readonly { place: string; line: string; words: string[] }[]> {
  const { fences } = await readMarkdownPage(file);
  return fences
    .filter(({ language }) => language === "sh")
    .flatMap(({ code, line }) => code.split("\n").map((text, index) => ({ text, line: line + index })))
    .map(({ text, line }) => ({ text: text.replace(/^npx /, ""), line }))
    .filter(({ text }) => /^kit (?!start|dev|mcp|acp|lsp)/.test(text))
    .map(({ text, line }) => ({
      place: `${file.slice(repositoryRoot.length + 1)}:${line}`,
      line: text,
      words: (text.match(/"[^"]*"|'[^']*'|\S+/g) ?? [])
        .slice(1)
        .map((word) => word.replace(/^(["'])(.*)\1$/, "$2")),
    }));
}
