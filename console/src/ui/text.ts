/**
 * Shows the codes of invisible characters that change how a text is read: those that change the direction of writing
 * (with which a line can look like other code), and control characters.
 */
export function visible(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern searches for them.
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g,
    (sign) => `[U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
}

/** A value as readable text: JSON indented by two spaces, or the string itself. */
export function toReadable(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

export function formatTokens(count: number): string {
  if (count < 1_000) return String(count);
  return count < 1_000_000
    ? `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k`
    : `${(count / 1_000_000).toFixed(1)}M`;
}

export function formatCost(dollars: number | null): string {
  if (dollars === null) return "price unknown";
  return dollars === 0 ? "$0" : `$${dollars < 0.01 ? dollars.toFixed(4) : dollars.toFixed(2)}`;
}

/** `340 ms`, `2.4 s`, `3 min 5 s`, `2 h 5 min`, `3 days 4 h`. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_500) return `${(ms / 1_000).toFixed(ms < 9_950 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(seconds / unit));
  if (days !== undefined && days > 0) return `${countDays(days)} ${(hours ?? 0) % 24} h`;
  if (hours !== undefined && hours > 0) return `${hours} h ${(minutes ?? 0) % 60} min`;
  return `${minutes} min ${seconds % 60} s`;
}

function countDays(days: number): string {
  return days === 1 ? "1 day" : `${days} days`;
}

/** `just now`, `4 min ago`, `in 3 h`, `in 2 days`; the date of what was a day ago or longer. */
export function formatAge(timestamp: string, now: number): string {
  const seconds = Math.round((now - Date.parse(timestamp)) / 1_000);
  const far = Math.abs(seconds);
  if (far < 5) return "just now";
  if (seconds >= 86_400) return formatDay(timestamp, now);
  const text =
    far < 60
      ? `${far} s`
      : far < 3_600
        ? `${Math.floor(far / 60)} min`
        : far < 86_400
          ? `${Math.floor(far / 3_600)} h`
          : countDays(Math.round(far / 86_400));
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** A time to come, as the clock or the calendar says it, and how long it takes until then: `14:05, in 3 h`, `26 Nov, in 2 days`. */
export function formatMoment(timestamp: string, now: number): string {
  const left = Date.parse(timestamp) - now;
  if (left < 60_000) return formatAge(timestamp, now);
  const moment =
    left < 86_400_000
      ? new Date(timestamp).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })
      : formatDay(timestamp, now);
  return `${moment}, ${formatAge(timestamp, now)}`;
}

/** `26 Nov`, with the year if it is another one. */
function formatDay(timestamp: string, now: number): string {
  const date = new Date(timestamp);
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    ...(isThisYear ? {} : { year: "numeric" }),
  });
}

/** The first words of a value for one line: of text, the text itself; of an object, its fields without braces and quotes. */
export function firstWords(value: unknown, most = 160): string {
  const text =
    typeof value === "string" ? value : value === undefined ? "" : describeFields(value).slice(0, 4 * most);
  return visible(text.replace(/\s+/g, " ").trim().slice(0, most));
}

function describeFields(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value) ?? "";
  return Object.entries(value)
    .map(([name, field]) => `${name}: ${typeof field === "string" ? field : JSON.stringify(field)}`)
    .join(", ");
}
