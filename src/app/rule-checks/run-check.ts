import { compileGlob } from "../../base/glob/glob.ts";
import { KitError } from "../../base/kit-error.ts";
import { parseFindings, type RuleFinding } from "../../guidelines/checks/parse-findings.ts";
import type { RuleCheck } from "../../project/project-config.ts";
import type { ExecRequest, ExecResult } from "../../sandboxes/contract.ts";
import { lineForFiles } from "../verify/runners.ts";

/** How a check ended. `failed`: its command could not run to its end, which says nothing about the rule. `skipped`: it has no file. */
export type RuleCheckEnd = "kept" | "broken" | "failed" | "skipped";

/** The result of a check. */
export interface RuleCheckOutcome {
  readonly end: RuleCheckEnd;
  /** The lines of the project's files that the command names. */
  readonly findings: readonly RuleFinding[];
  /** Unless the rule is kept: the beginning and the end of what the command printed, or why it failed. */
  readonly output: string;
}

/** Where a check runs: the project, or a checkout of it. */
export interface CheckPlace {
  exec(request: Pick<ExecRequest, "command" | "timeoutMs" | "maxOutputBytes" | "env">): Promise<ExecResult>;
  /** A text with paths as the project names them. */
  withoutRoot(text: string): string;
  /** Whether the project has a file. */
  isFile(path: string): boolean;
}

const defaultTimeoutS = 60;
/** The system limits the arguments of one command. */
const mostArgumentBytes = 100_000;
const mostOutputBytes = 256 * 1024;
/** Characters of the beginning and of the end. */
const edgeLength = 1_000;

/** Tells whether a check is about a file. Throws `invalid_request` for a glob that can match none. */
export function matcherOf({ rule, files }: RuleCheck): (path: string) => boolean {
  const globs = [files].flat().map(compileGlob);
  for (const { source, invalid } of globs)
    if (invalid !== undefined)
      throw new KitError({
        code: "invalid_request",
        message: `guidelines.check: ${source.slice(0, 200)} of ${rule} matches no file: ${invalid}.`,
      });
  return (path) => globs.some((glob) => glob.matches(path));
}

/** Runs a check on the files that it is about. A command without `{files}` runs also if they are gone. */
export async function runCheck(
  { run, timeout_seconds = defaultTimeoutS }: RuleCheck,
  files: readonly string[],
  place: CheckPlace,
): Promise<RuleCheckOutcome> {
  if (!run.includes("{files}")) return await runOnce(lineForFiles(run, []), timeout_seconds, place);
  const outcomes: RuleCheckOutcome[] = [];
  for (const some of inParts(files))
    outcomes.push(await runOnce(lineForFiles(run, some), timeout_seconds, place));
  const end = (["broken", "failed", "kept"] as const).find((one) =>
    outcomes.some((each) => each.end === one),
  );
  const worst = outcomes.filter((each) => each.end === end);
  return {
    end: end ?? "skipped",
    findings: worst.flatMap(({ findings }) => findings),
    output: toExcerpt(worst.map(({ output }) => output).join("\n")),
  };
}

async function runOnce(
  command: readonly string[],
  seconds: number,
  place: CheckPlace,
): Promise<RuleCheckOutcome> {
  const limits = { timeoutMs: seconds * 1_000, maxOutputBytes: mostOutputBytes };
  const result = await place.exec({ command, env: { NO_COLOR: "1" }, ...limits }).catch((error: unknown) => {
    if (error instanceof KitError && error.code === "unavailable") return error;
    throw error;
  });
  if (result instanceof KitError) return { end: "failed", findings: [], output: result.message };
  const { exit_code: code, timed_out, stdout, stderr } = result;
  if (code === 0) return { end: "kept", findings: [], output: "" };
  const printed = place.withoutRoot(`${stdout}\n${stderr}`);
  const excerpt = toExcerpt(printed);
  // 126, 127 and the numbers of signals: a shell could not start a program, or it was killed.
  if (code === null || code === 126 || code === 127 || (code > 128 && code < 160)) {
    const ended = code === null ? "It was stopped." : `It ended with exit code ${code}.`;
    const why = timed_out ? `It did not end within ${seconds} s.` : ended;
    return { end: "failed", findings: [], output: `${why}\n${excerpt}`.trim() };
  }
  return {
    end: "broken",
    findings: parseFindings(printed, place.isFile),
    output: excerpt === "" ? `It ended with exit code ${code}, and printed nothing.` : excerpt,
  };
}

/** Files as the arguments of several commands, for a system that limits them. */
function* inParts(files: readonly string[]): Iterable<readonly string[]> {
  let part: string[] = [];
  let bytes = 0;
  for (const path of files) {
    bytes += Buffer.byteLength(path) + 3;
    if (bytes > mostArgumentBytes && part.length > 0) {
      yield part;
      part = [];
      bytes = Buffer.byteLength(path) + 3;
    }
    part.push(path);
  }
  if (part.length > 0) yield part;
}

function toExcerpt(output: string): string {
  const text = output.trim();
  if (text.length <= 2 * edgeLength) return text;
  const left = text.length - 2 * edgeLength;
  return `${text.slice(0, edgeLength)}\n[… ${left} characters …]\n${text.slice(-edgeLength)}`;
}
