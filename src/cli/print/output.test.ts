import { createWriteStream, existsSync } from "node:fs";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { displayWidth } from "../text/safe-text.ts";
import { createOutput, type OutputStream } from "./output.ts";

function terminal(columns: number): OutputStream & PassThrough {
  return Object.assign(new PassThrough(), { isTTY: true, columns });
}

test("a terminal of unknown width counts as 80 columns wide", () => {
  const stderr = terminal(0);
  const output = createOutput(terminal(0), stderr);
  expect(output.width).toBe(80);
  output.progress("x".repeat(100));
  expect(String(stderr.read())).toContain(`${"x".repeat(78)}…`);
  expect(createOutput(terminal(60), stderr).width).toBe(60);
});

test("notes are wrapped at words in a terminal, and not in a pipe", () => {
  const [stderr, piped] = [terminal(20), new PassThrough()];
  const remark = "error: There is no agent here.\n  meta: what was wrong with it";
  createOutput(terminal(20), stderr).note(remark);
  createOutput(new PassThrough(), piped).note(remark);
  expect(String(stderr.read())).toBe("error: There is no\nagent here.\n  meta: what was\n  wrong with it\n");
  expect(String(piped.read())).toBe(`${remark}\n`);
});

test("piped output has no width, and shows no progress", () => {
  const stderr = new PassThrough();
  const output = createOutput(new PassThrough(), stderr);
  output.progress("working");
  expect(output.width).toBe(Number.POSITIVE_INFINITY);
  expect(stderr.read()).toBeNull();
});

test("progress stays on one line in any script: each update replaces only that line", () => {
  const stderr = terminal(40);
  createOutput(terminal(40), stderr).progress("返金を探しています ".repeat(10));
  const printed = stripVTControlCharacters(String(stderr.read())).trim();
  expect(printed).toContain("返金");
  expect(displayWidth(printed)).toBeLessThan(40);
});

test.skipIf(!existsSync("/dev/full"))(
  "a log on a full disk is reported once, and what follows is dropped",
  async () => {
    const [stdout, stderr] = [createWriteStream("/dev/full"), new PassThrough()];
    const output = createOutput(stdout, stderr);
    output.line("one");
    await new Promise<void>((resolve) => stdout.once("close", () => resolve()));
    output.line("two");
    output.note("The server goes on.");
    expect(String(stderr.read())).toBe(
      "error: The rest of the output cannot be written: no space left on device.\nThe server goes on.\n",
    );
    expect(output.hasFailed).toBe(true);
  },
);

test("a line of a file is no command for GitHub's runner, and an annotation of kit is one", () => {
  const stdout = new PassThrough();
  const output = createOutput(stdout, new PassThrough());
  const lines = ["  ::set-output name=a::b", "##[group]x", "::error file=a.ts::Wrong.", "std::vector"];
  vi.stubEnv("GITHUB_ACTIONS", "true");
  onTestFinished(() => void vi.unstubAllEnvs());
  output.line(lines.join("\n"));
  expect(String(stdout.read())).toBe(
    "  : :set-output name=a::b\n## [group]x\n::error file=a.ts::Wrong.\nstd::vector\n",
  );
  vi.stubEnv("GITHUB_ACTIONS", undefined);
  output.line(lines[0]);
  expect(String(stdout.read())).toBe(`${lines[0]}\n`);
});
