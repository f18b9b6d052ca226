import { usageError } from "../report-error.ts";

/** The options of `--spec`, and those that mean nothing with it. */
const ofSpecs = ["task", "attempts", "parallel", "maxCost", "testsBy", "dryRun"] as const;
const notOfSpecs = ["id", "session", "continue", "role", "file", "payload"] as const;

export function checkSpecOptions(
  options: Readonly<
    Partial<Record<(typeof ofSpecs)[number] | (typeof notOfSpecs)[number] | "spec", unknown>>
  >,
): void {
  const names = options.spec === undefined ? ofSpecs : notOfSpecs;
  const astray = names.find((name) => options[name] !== undefined);
  if (astray === undefined) return;
  const name = flagOf(astray);
  throw usageError(
    options.spec === undefined
      ? `${name} works with --spec only.`
      : `${name} does not work with --spec: each task has a session of its own.`,
    "'kit run --help' shows each.",
  );
}

export function parseDollars(written: string): number {
  const dollars = Number(written);
  if (written.trim() !== "" && Number.isFinite(dollars) && dollars >= 0) return dollars;
  throw usageError(`--max-cost takes US dollars, not ${JSON.stringify(written)}.`, "Such as 2.50.");
}

/** `--max-cost` for `maxCost`. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
