import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import type { AnyEntry } from "./command.ts";
import { commandTable } from "./command-table.ts";
import { main } from "./main.ts";

/** Every command and group of commands, as its words. */
function linesOf(
  entries: readonly AnyEntry[],
  before: readonly string[] = [],
): readonly (readonly string[])[] {
  return entries.flatMap((entry) => {
    const words = [...before, entry.name];
    return [words, ...("commands" in entry ? linesOf(entry.commands, words) : [])];
  });
}

async function helpOf(words: readonly string[], columns: number): Promise<readonly string[]> {
  const terminal = Object.assign(new PassThrough(), { isTTY: true, columns });
  let text = "";
  terminal.on("data", (piece) => {
    text += piece;
  });
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const code = await main([...words, "--help"], { stdin, stdout: terminal, stderr: terminal, cwd: "/" });
  expect(code).toBe(0);
  return stripVTControlCharacters(text).split("\n");
}

test("every help page fits 80 columns, describes the command, and has no empty section", async () => {
  const lines = linesOf(commandTable);
  expect(lines.length).toBeGreaterThan(40);
  for (const words of [[], ...lines]) {
    const help = await helpOf(words, 80);
    const name = words.join(" ");
    expect(
      help.filter((line) => line.length > 80),
      name,
    ).toEqual([]);
    expect(help[0], name).toMatch(new RegExp(`^Usage: kit ${name}`));
    expect(
      help.filter((line, at) => /^[A-Z][a-z ]+:$/.test(line) && !help[at + 1]?.startsWith("  ")),
      name,
    ).toEqual([]);
    expect(help.join("\n"), name).toContain("Examples:\n  ");
  }
});
