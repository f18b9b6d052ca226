/** A number such as "01.02" as links and ids spell it: "1.2". */
export function toDottedNumber(written: string): string {
  return written.includes("0") ? written.replace(/(^|\.)0+(?=\d)/g, "$1") : written;
}
