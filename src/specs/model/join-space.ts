/** A text in one line: white space joined, none at its ends. Single spaces cost nothing. */
export function joinSpace(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, " ").trim();
}
