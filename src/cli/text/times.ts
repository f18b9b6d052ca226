/** A duration for people: `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return twoUnits(seconds, 60, ["min", "s"]);
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return twoUnits(minutes, 60, ["h", "min"]);
  return twoUnits(Math.round(minutes / 60), 24, ["d", "h"]);
}

/** How far an ISO 8601 time is from now: `12 s ago`, `in 3 h`, `now`. A text that is no time stays as it is. */
export function fromNow(time: string, now: number = Date.now()): string {
  const ms = Date.parse(time) - now;
  if (Number.isNaN(ms)) return time;
  const size = Math.abs(ms);
  if (size < 1_000) return "now";
  const units = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1_000, "s"],
  ] as const;
  const [unit, name] = units.find(([length]) => size >= length) ?? units[3];
  const text = `${Math.floor(size / unit)} ${name}`;
  return ms < 0 ? `${text} ago` : `in ${text}`;
}

/** The time itself, and how far it is: `2026-11-22T10:50:02.383Z (12 s ago)`. */
export function withDistance(time: string | undefined): string | undefined {
  return time === undefined ? undefined : `${time} (${fromNow(time)})`;
}

function twoUnits(value: number, size: number, [large, small]: readonly [string, string]): string {
  const rest = value % size;
  return rest === 0 ? `${value / size} ${large}` : `${Math.floor(value / size)} ${large} ${rest} ${small}`;
}
