import { Cron } from "croner";
import { KitError } from "../../base/kit-error.ts";

/**
 * When a cron expression comes next after a time (ms since 1970); undefined when it never does again.
 * Throws `invalid_request` for an expression or a time zone that is none.
 */
export function nextOccurrence(
  schedule: { readonly cron: string; readonly timezone?: string | undefined },
  after: number,
): number | undefined {
  const { cron, timezone = "UTC" } = schedule;
  checkTimezone(timezone);
  // croner takes a date for a pattern that comes once, and more fields than are promised here.
  const fields = cron.trim().split(/\s+/).length;
  if (!cron.trim().startsWith("@") && fields !== 5 && fields !== 6) throw badExpression(cron);
  try {
    const pattern = new Cron(cron, { timezone, paused: true, mode: "5-or-6-parts" });
    return pattern.nextRun(new Date(after))?.getTime();
  } catch (cause) {
    throw badExpression(cron, cause);
  }
}

function checkTimezone(timezone: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch (cause) {
    throw badTimezone(timezone, cause);
  }
}

function badTimezone(timezone: string, cause: unknown): KitError {
  return new KitError({
    code: "invalid_request",
    message: `${JSON.stringify(timezone.slice(0, 100))} is not a time zone.`,
    hint: "Use an IANA name, such as Europe/Berlin.",
    cause,
  });
}

function badExpression(cron: string, cause?: unknown): KitError {
  return new KitError({
    code: "invalid_request",
    message: `${JSON.stringify(cron.slice(0, 100))} is not a cron expression.`,
    hint: "Five or six fields: (second) minute hour day month weekday, such as 0 9 * * MON-FRI.",
    cause,
  });
}
