import { isIPv4, isIPv6 } from "node:net";

/** No text of a checked format is longer. */
const maxLength = 10_000;

const date = /^(\d{4})-(\d\d)-(\d\d)$/;
const time = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(?:\.\d+)?(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const email = /^[^\s@<>"(),:;[\]\\]+@[^\s@<>"(),:;[\]\\]+$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** The formats that are checked, each in linear time; others say something to people only. */
const formats: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["date", isDate],
  ["time", (text) => time.test(text)],
  ["date-time", (text) => /^.{10}[tT ]/.test(text) && isDate(text.slice(0, 10)) && time.test(text.slice(11))],
  ["email", (text) => email.test(text)],
  ["uuid", (text) => uuid.test(text)],
  ["ipv4", isIPv4],
  ["ipv6", (text) => isIPv6(text) && !text.includes("%")],
  ["hostname", (text) => text.length <= 253 && text.split(".").every((part) => label.test(part))],
  ["uri", (text) => /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]*$/i.test(text)],
]);

export function hasFormat(text: string, format: string): boolean {
  const check = formats.get(format);
  return check === undefined || (text.length <= maxLength && check(text));
}

function isDate(text: string): boolean {
  const [, year, month, day] = (date.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  const days = new Date(Date.UTC(2000, 0, 1));
  days.setUTCFullYear(year, month, 0);
  return month >= 1 && month <= 12 && day >= 1 && day <= days.getUTCDate();
}
