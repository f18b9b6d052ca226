import { asText } from "./choices.ts";
import { type CommandOption, option } from "./command.ts";
import { usageError } from "./report-error.ts";

/** The options of lists that search. */
export const searchOption: CommandOption<string> = option(
  "-s, --search <text>",
  "Only those that contain this text",
  asText,
);

/** The options of lists that are limited to a time; their values are ISO 8601. */
export const timeOptions: {
  readonly since: CommandOption<string>;
  readonly until: CommandOption<string>;
} = {
  since: option("--since <time>", "Only from this time on: 2h, 3d, or an ISO date or time", parseTime),
  until: option("--until <time>", "Only before this time", parseTime),
};

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Parses a time: how long ago, or an ISO 8601 date or time, which is one of this machine without its zone. */
function parseTime(text: string): string {
  const [, number, unit = ""] = /^(\d{1,5})([mhdw])$/.exec(text) ?? [];
  const ms = number === undefined ? Date.parse(text) : Date.now() - Number(number) * (unitMs[unit] ?? 0);
  const isWritten = number !== undefined || /^\d{4}-\d{2}-\d{2}/.test(text);
  if (isWritten && !Number.isNaN(ms) && ms > 0) return new Date(ms).toISOString();
  throw usageError(`'${text}' is not a time.`, "Such as 30m, 2h, 3d, 2026-11-20 or 2026-11-20T10:00:00Z.");
}

/** Returns the note of a list that goes on. */
export function moreText(total: number | undefined): string {
  const all = total === undefined ? "There are more" : `There are ${total} in all`;
  return `${all}: -n lists more at a time, --cursor with --json the next ones.`;
}
