import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { repositoryRoot } from "../../scripts/files.ts";
import { runKit } from "../../src/cli/testing/run-kit.ts";
import type { CaseReport, LoadedRecord } from "./case-report.ts";
import type { LaidOutCase } from "./load-case.ts";
import { contentOfCase, type MarkdownCase, pathOfCase } from "./markdown-case.ts";
import { layOut } from "./path-cases.ts";

/** Options for testing a case. */
export interface CaseTrial {
  readonly load: (laidOut: LaidOutCase) => Promise<CaseReport>;
  /** The commands that print it. */
  readonly commands: readonly string[];
}

export const everyCommand: readonly string[] = ["specs list", "specs validate", "guidelines list"];

/** Creates a case on disk, loads and prints it, and checks the outcome. */
export async function checkCase(markdownCase: MarkdownCase, { load, commands }: CaseTrial): Promise<void> {
  // One folder deeper, because a fixture can write next to the repository.
  const base = await mkdtemp(join(tmpdir(), "kit-security-"));
  const root = join(base, "repository");
  try {
    await mkdir(root);
    if (markdownCase.fixture !== undefined) await layOut(root, markdownCase.fixture);
    else {
      const file = join(root, pathOfCase(markdownCase));
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, contentOfCase(markdownCase));
    }
    // Sequential, because processor time is measured.
    const report = await load({ root, markdownCase });
    const printed = await runCommands(root, commands);
    checkOutcome(report, markdownCase);
    checkReplies(report);
    checkRecords(report, markdownCase);
    checkOutput(`${JSON.stringify(report)}\n${printed}`, { markdownCase, printed, report });
    checkLimits(report, markdownCase);
    const canaries = [root, repositoryRoot].map((folder) => join(folder, "PWNED"));
    expect(canaries.filter((file) => existsSync(file))).toEqual([]);
    expect(report.polluted).toBe(false);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

/** Loads a case in a separate process, to measure its memory and time alone. */
export async function loadInOwnProcess({ root, markdownCase }: LaidOutCase): Promise<CaseReport> {
  const caseFile = join(dirname(root), "case.json");
  await writeFile(caseFile, JSON.stringify(markdownCase));
  const script = join(import.meta.dirname, "load-case.ts");
  // With this heap limit garbage is collected in time; otherwise the growth of the process depends on how busy the machine is.
  const args = ["--max-old-space-size=160", script, root, caseFile];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: repositoryRoot,
    maxBuffer: 512 * 1024 * 1024,
    timeout: 60_000,
  });
  return JSON.parse(stdout);
}

/** Runs the command line's output for people, which may report invalid files, but must not crash. */
async function runCommands(root: string, commands: readonly string[]): Promise<string> {
  let output = "";
  for (const line of commands) {
    const { exitCode, stdout, stderr } = await runKit([...line.split(" "), "--cwd", root], { cwd: root });
    expect(exitCode, `kit ${line}`).toBeOneOf([0, 1]);
    output += stdout + stderr;
  }
  expect(output).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
  return output;
}

function checkOutcome(report: CaseReport, markdownCase: MarkdownCase): void {
  const path = pathOfCase(markdownCase);
  const { expected } = markdownCase;
  const diagnostics = report.diagnostics.filter((diagnostic) => diagnostic.path === path);
  const { skill } = report;
  const problem = skill !== undefined && "problem" in skill ? [skill.problem] : [];
  const loaded = report.records.some((record) => record.path === path) || (skill && "name" in skill) === true;
  const errors = [...diagnostics.filter((diagnostic) => diagnostic.severity === "error"), ...problem];
  if (expected.outcome === "ok") expect({ loaded, errors }).toEqual({ loaded: true, errors: [] });
  if (expected.outcome === "diagnostic")
    expect([...diagnostics, ...problem], "no diagnostic names the file").not.toEqual([]);
  const isEmpty = markdownCase.content === "";
  if (expected.outcome === "ok_or_diagnostic")
    expect(loaded || diagnostics.length + problem.length > 0 || isEmpty).toBe(true);
  if (expected.diagnostic_code_any_of !== undefined) {
    expect(diagnostics.some(({ code }) => expected.diagnostic_code_any_of?.includes(code ?? ""))).toBe(true);
  }
  if (expected.other_files_ok) {
    expect(report.records.some((record) => record.path === "AGENTS.md")).toBe(true);
  }
}

function checkReplies(report: CaseReport): void {
  for (const { path, status, body } of report.replies) {
    expect(status, `${path}: ${body.slice(0, 200)}`).toBe(200);
    if (path !== "/") JSON.parse(body);
  }
}

function checkRecords(report: CaseReport, markdownCase: MarkdownCase): void {
  const { expected } = markdownCase;
  const titles = report.records.map((record) => record.title);
  let texts = report.records.map((record) => `${record.title}\n${record.content}`).join("\n");
  if (report.skill !== undefined) texts += `\n${Object.values(report.skill).join("\n")}`;
  for (const text of expected.text_includes ?? []) expect(texts).toContain(text);
  for (const text of expected.heading_text_excludes ?? []) expect(titles.join("\n")).not.toContain(text);
  if (expected.title_any_of !== undefined) {
    expect(titles.some((title) => expected.title_any_of?.includes(title))).toBe(true);
  }
  const longest = expected.max_title_chars;
  if (longest !== undefined) {
    const names = [
      ...titles,
      ...report.records.map(({ id }) => id),
      ...report.steering.map(({ filename }) => filename),
    ];
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(longest);
  }
  if (expected.unique_ids) {
    const ids = report.records.map(toKey);
    expect(new Set(ids).size).toBe(ids.length);
    expect(report.ids_again).toEqual(report.records.map(({ id }) => id));
  }
  checkHeadings(report, markdownCase);
  if (expected.frontmatter !== undefined) expect(report.frontmatter).toEqual(expected.frontmatter);
  for (const key of expected.roundtrip_frontmatter_keys_exclude ?? []) {
    for (const { frontmatter, read_back } of report.steering) {
      expect(Object.keys({ ...frontmatter, ...read_back })).not.toContain(key);
    }
  }
}

/** Every title must be a heading that the shared scanner found. */
function checkHeadings(report: CaseReport, markdownCase: MarkdownCase): void {
  const { expected } = markdownCase;
  const headings = report.headings ?? [];
  if (expected.headings !== undefined) {
    expect(headings).toEqual(expected.headings);
    const titles = new Set(report.records.map((record) => record.title));
    const visible = new Set(expected.headings.map(([, title]) => title));
    const lines = Buffer.from(contentOfCase(markdownCase))
      .toString("utf8")
      .split(/\r?\n|\r/);
    const hidden = lines.flatMap((line) => /^\s*#{1,6}\s+(.*?)[\s#]*$/.exec(line)?.slice(1) ?? []);
    expect(hidden.filter((title) => !visible.has(title) && titles.has(title))).toEqual([]);
  }
  if (expected.heading_count !== undefined) expect(headings.length).toBe(expected.heading_count);
  if (expected.has_heading !== undefined) expect(headings).toContainEqual(expected.has_heading);
}

function checkOutput(
  everything: string,
  { markdownCase, printed, report }: { markdownCase: MarkdownCase; printed: string; report: CaseReport },
): void {
  const { expected } = markdownCase;
  for (const text of expected.output_excludes ?? []) expect(everything).not.toContain(text);
  for (const text of expected.log_output_excludes ?? []) expect(printed).not.toContain(text);
  const html = report.replies.find(({ path }) => path === "/")?.body ?? "";
  for (const text of expected.html_excludes ?? []) expect(html).not.toContain(text);
  for (const text of expected.diagnostic_or_escaped ?? []) {
    const withName = report.diagnostics.some((diagnostic) => diagnostic.path === pathOfCase(markdownCase));
    expect(withName || !printed.includes(text)).toBe(true);
  }
}

function checkLimits(report: CaseReport, { expected }: MarkdownCase): void {
  // Processor time, because elapsed time includes other processes on a busy machine.
  expect(report.cpu_ms).toBeLessThan(expected.max_ms ?? 2000);
  expect(report.rss_growth_mb).toBeLessThan(expected.max_rss_growth_mb ?? 256);
}

function toKey({ kind, id }: LoadedRecord): string {
  return `${kind}:${id}`;
}
