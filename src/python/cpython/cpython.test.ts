import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { createPython } from "../create-python.ts";
import { PythonError } from "../python-error.ts";

interface Program {
  readonly title: string;
  readonly code: string;
  /** The behavior of Monty where CPython does something else. */
  readonly difference: string | undefined;
}

const programs: readonly Program[] = readFileSync(new URL("./programs.txt", import.meta.url), "utf8")
  .split(/^#%% /m)
  .slice(1)
  .map((text) => {
    const [title = "", ...lines] = text.trimEnd().split("\n");
    const difference = lines.at(-1)?.startsWith("#! ") ? lines.pop()?.slice(3) : undefined;
    return { title, code: lines.join("\n"), difference };
  });

/** Debian's own comes first: what stands in front of it in the path may be a launcher without a Python. */
const interpreter = ["/usr/bin/python3", "python3"].find((name) => {
  try {
    execFileSync(name, ["-I", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
});

const python = createPython();
afterAll(() => python.close());

/** The outcome of a program in Monty, in the words of `run-programs.py`. */
async function outcomeOf(code: string): Promise<{ readonly text: string; readonly error?: PythonError }> {
  try {
    const { result, stdout } = await python.createSession().run(code, { returns: "repr" });
    return { text: `${stdout}${result}` };
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    return { text: `${error.stdout}raises ${error.exception.type}`, error };
  }
}

const outcomes = Promise.all(programs.map(({ code }) => outcomeOf(code)));

describe.skipIf(interpreter === undefined)("held against CPython 3.11 or newer", () => {
  test("Monty does what CPython does, but for the differences that are listed", async () => {
    const expected = await inCPython(programs.map(({ code }) => code));
    const found = (await outcomes).map(({ text, error }, index) => {
      if (text === expected[index]) return undefined;
      return error === undefined ? `else ${JSON.stringify(text)}` : `raises ${error.message}`;
    });
    const lines = (differences: readonly (string | undefined)[]): readonly string[] =>
      programs.map(({ title }, index) => `${title}: ${differences[index] ?? "the same"}`);
    expect(lines(found)).toEqual(lines(programs.map(({ difference }) => difference)));
  });
});

test("there are some two hundred programs with unique names", () => {
  expect(programs.length).toBeGreaterThan(200);
  expect(new Set(programs.map(({ title }) => title)).size).toBe(programs.length);
});

test("features that Monty lacks are reported with what to write instead", async () => {
  const silent = (await outcomes).flatMap(({ error }, index) => {
    const program = programs[index];
    if (error === undefined || program?.difference === undefined) return [];
    const isExplained =
      error.exception.type === "NotImplementedError" && / write | or use /.test(error.message);
    return isExplained || error.traceback.includes("\nHint: ") ? [] : [`${program.title}: ${error.message}`];
  });
  expect(silent).toEqual([]);
});

async function inCPython(codes: readonly string[]): Promise<readonly string[]> {
  const program = fileURLToPath(new URL("./run-programs.py", import.meta.url));
  return new Promise((resolve, reject) => {
    const child = execFile(interpreter ?? "", ["-I", program], (error, stdout) => {
      if (error) reject(error);
      else resolve(JSON.parse(stdout));
    });
    child.stdin?.end(JSON.stringify(codes));
  });
}
