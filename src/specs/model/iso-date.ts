const dateOf = /^(\d{4})-(\d{2})-(\d{2})$/;
const timeOf = /^(\d{2}):(\d{2}):(\d{2}(?:\.\d+)?)(?:z|([+-])(\d{2})(?::?(\d{2}))?)$/i;

/**
 * Whether a text is a full date (`2026-05-26`) or a full date-time (`2026-05-26T18:03:03+01:00`) that the
 * calendar and the clock have, exactly as the formats `date` and `date-time` of the published schema
 * decide it: a time has seconds and an offset. Reduced dates (`2026-05`), week dates and the basic
 * format (`20260526`) are neither.
 */
export function isIsoDate(text: string): boolean {
  const [date = "", time, ...more] = text.split(/[t\s]/i);
  return more.length === 0 && isDate(date) && (time === undefined || isTime(time));
}

function isDate(text: string): boolean {
  const [year = 0, month = 0, day = 0] = dateOf.exec(text)?.slice(1).map(Number) ?? [];
  return month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month);
}

function isTime(text: string): boolean {
  const match = timeOf.exec(text);
  if (match === null) return false;
  const [hour, minute, second] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const sign = match[4] === "-" ? -1 : 1;
  const [offsetHour, offsetMinute] = [Number(match[5] ?? 0), Number(match[6] ?? 0)];
  if (offsetHour > 23 || offsetMinute > 59) return false;
  if (hour <= 23 && minute <= 59 && second < 60) return true;
  // A leap second: 23:59:60 in UTC, whatever the clock of the offset says.
  const utcMinute = minute - offsetMinute * sign;
  const utcHour = hour - offsetHour * sign - (utcMinute < 0 ? 1 : 0);
  const isLastMinute = (utcHour === 23 || utcHour === -1) && (utcMinute === 59 || utcMinute === -1);
  return isLastMinute && second < 61;
}

function daysOf(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
