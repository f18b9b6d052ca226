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

/** `340 ms`, `2.4 s`, `3 min 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `just now`, `4 min ago`, `in 3 h`, then the date. */
export function formatAge(timestamp: string, now: number): string {
  const seconds = Math.round((now - Date.parse(timestamp)) / 1_000);
  const far = Math.abs(seconds);
  if (far < 5) return "just now";
  const text =
    far < 60
      ? `${far} s`
      : far < 3_600
        ? `${Math.floor(far / 60)} min`
        : far < 86_400
          ? `${Math.floor(far / 3_600)} h`
          : undefined;
  if (text === undefined)
    return new Date(timestamp).toLocaleDateString(undefined, { day: "numeric", month: "short" });
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}
