/** The longest slug; ids stay readable and file names legal. */
const maxSlugLength = 60;

/**
 * A text as an id or file name part: lower case, words joined by hyphens, letters and digits of
 * any script, at most `maxSlugLength` UTF-16 units. Empty when the text has no letter or digit.
 *
 * @example
 * ```ts
 * import { slugOf } from "kit/specs";
 *
 * console.log(slugOf("Refunds & returns")); // refunds-returns
 * ```
 */
export function slugOf(text: string): string {
  const words =
    text
      .normalize("NFKC")
      .toLowerCase()
      .slice(0, 4 * maxSlugLength)
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words
    .join("-")
    .slice(0, maxSlugLength)
    .replace(/[-\ud800-\udbff]+$/u, "");
}
