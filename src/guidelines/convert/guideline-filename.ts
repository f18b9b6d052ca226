/** The longest name, without its extension. */
const maxNameLength = 60;

/**
 * A title as a file name: lower case, words joined by hyphens, `[a-z0-9-]` only, at most 60 characters
 * and `.md`. Letters with marks lose them; a title of other scripts is `guideline.md`.
 */
export function guidelineFilename(title: string): string {
  const words = title
    .slice(0, 1000)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  const name = (words ?? []).join("-").slice(0, maxNameLength).replace(/-+$/, "");
  return `${name === "" ? "guideline" : name}.md`;
}
