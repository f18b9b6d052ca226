const maxLength = 60;
const maxWords = 8;

/**
 * Whether a line of its own names what stands below it: it is short, and in bold or with a colon at
 * its end. Before a list, a short line without a full stop is enough.
 */
export function isLabel(text: string, place: "alone" | "before-list"): boolean {
  if (text.length > maxLength || text.split(/\s+/, maxWords + 1).length > maxWords) return false;
  if (labelText(text) === "") return false;
  if (endsWithColon(text) || /^(\*\*|__)[^*_]+\1$/.test(text)) return true;
  return place === "before-list" && !/[.!?;。！？…`>|]$/.test(text);
}

/** A label without emphasis and without its colon. */
export function labelText(text: string): string {
  return text
    .replace(/\*\*|__/g, "")
    .trim()
    .replace(/[:：]$/, "")
    .trim();
}

/** Whether a text ends with a colon, in or out of emphasis. */
export function endsWithColon(text: string): boolean {
  return /[:：][*_]*$/.test(text);
}
