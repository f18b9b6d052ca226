import { execFile, execFileSync } from "node:child_process";
import { promisify, stripVTControlCharacters } from "node:util";
import { afterAll, expect, test } from "vitest";
import { isCampaign } from "../testing/campaign.suite.ts";
import { kitCommandLine, runKit } from "./testing/run-kit.ts";
import { createSampleProject } from "./testing/sample-project.ts";
import { displayWidth } from "./text/safe-text.ts";

const project = await createSampleProject();
await project.write(
  "docs/specs/要件.md",
  "---\nspec_type: requirement\n---\n\n## 返金: お客様は返金を受けられる \u202Eevil\u001b]0;owned\u0007\n\n本文\n",
);
await project.write("kit.toml", `[[specs.custom]]\ninclude = "docs/specs/*.md"\nspec_type = "requirement"\n`);
afterAll(() => project[Symbol.asyncDispose]());

const hasScript = (() => {
  try {
    return execFileSync("script", ["--version"], { encoding: "utf8" }).includes("util-linux");
  } catch {
    return false;
  }
})();

/** Runs a command line in a pseudo-terminal of a width, and gives what the terminal received. */
async function inTerminal(
  columns: number,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<string> {
  const line = kitCommandLine(args)
    .map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
    .join(" ");
  const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...inherited } = process.env;
  const { stdout } = await promisify(execFile)(
    "script",
    ["-qec", `stty cols ${columns}; ${line}`, "/dev/null"],
    {
      cwd: project.root,
      env: { ...inherited, TERM: "xterm-256color", ...env },
    },
  );
  // Progress shows on a busy machine; what clears it comes before the answer.
  const answer = stdout.split("\r\u001b[K").at(-1) ?? "";
  return answer.replaceAll("\r\n", "\n");
}

// Colours and nothing else: no cursor movement, no title, no bell.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const colour = /\u001b\[\d+(?:;\d+)*m/g;

function expectFitting(text: string, columns: number): void {
  expect(text).toMatch(colour);
  expect(text.replaceAll(colour, "")).not.toMatch(/[^\P{Cc}\n]|[\u202A-\u202E]/u);
  const lines = stripVTControlCharacters(text).split("\n");
  const tooWide = lines.filter((line) => displayWidth(line) > columns);
  // A word that cannot be broken, such as an id or a path, may stick out.
  expect(tooWide.filter((line) => line.trim().includes(" "))).toEqual([]);
}

test.for([
  [["specs", "list"]],
  [["specs", "impact", "src/checkout/cart.ts"]],
  [["specs", "validate"]],
  [["specs", "coverage", "--all"]],
  [["guidelines", "list"]],
  [["guidelines", "explain", "src/checkout/cart.test.ts"]],
  [["guidelines", "lint"]],
  [["doctor"]],
])(
  "in a terminal, kit $0 fits its width and prints no control sequences except colours",
  async ([args = []]) => {
    for (const columns of [60, 120]) {
      const { stdout } = await runKit(args, { cwd: project.root, columns });
      expectFitting(stdout, columns);
    }
  },
);

test.skipIf(!hasScript)("a real terminal determines the width and the colours", async () => {
  for (const columns of [60, 120]) expectFitting(await inTerminal(columns, ["specs", "list"]), columns);
});

test.runIf(hasScript && isCampaign)("NO_COLOR removes the colours and keeps the columns", async () => {
  const text = await inTerminal(100, ["specs", "list"], { NO_COLOR: "1" });
  expect(text).not.toContain("\u001b");
  expect(text).toMatch(/^ +LINE +SPEC +TOOL +TYPE +TITLE$/m);
});

test.runIf(hasScript && isCampaign)(
  "a document is printed without characters that could control the terminal",
  async () => {
    await project.write(".kiro/steering/hostile.md", "# Hostile\n\nred\u001b[2J\u001b]0;owned\u0007text\n");
    const list = JSON.parse(
      (await inTerminal(100, ["guidelines", "list", "--source", "steering", "--json"])) || "{}",
    );
    const text = await inTerminal(100, ["guidelines", "show", list.guidelines[0].id], { NO_COLOR: "1" });
    expect(text).toContain("redtext");
    expect(text).not.toContain("\u001b");
  },
);
