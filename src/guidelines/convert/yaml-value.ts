// YAML 1.1 readers take these for booleans and nulls, so they are quoted although YAML 1.2 does not.
const reserved = /^(?:true|false|yes|no|on|off|y|n|null)$/i;
const plain = /^[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*$/;
// A double-quoted scalar may not hold these characters as they are: YAML 1.2.2, section 5.1.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be escaped
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/g;

/** A text as a YAML scalar on one line, quoted where it needs to be. */
export function toYamlScalar(text: string): string {
  return plain.test(text) && !reserved.test(text) ? text : toQuotedYaml(text);
}

/** A text as a double-quoted YAML scalar; globs always are, for the readers that need it. */
export function toQuotedYaml(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&").replace(unprintable, escapeOf);
  return `"${escaped}"`;
}

function escapeOf(character: string): string {
  switch (character) {
    case "\n":
      return "\\n";
    case "\t":
      return "\\t";
    case "\r":
      return "\\r";
    default:
      return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  }
}

/** A front matter block of texts and lists of texts, with its fences and a line end. */
export function toFrontMatter(
  entries: Readonly<Record<string, string | boolean | readonly string[]>>,
): string {
  const lines = Object.entries(entries).map(([key, value]) => {
    if (typeof value === "boolean") return `${key}: ${value}`;
    if (typeof value !== "string")
      return `${key}:${value.map((item) => `\n  - ${toQuotedYaml(item)}`).join("")}`;
    return `${key}: ${isPatternKey(key) ? toQuotedYaml(value) : toYamlScalar(value)}`;
  });
  return `---\n${lines.join("\n")}\n---\n`;
}

function isPatternKey(key: string): boolean {
  return key === "fileMatchPattern" || key === "globs" || key === "paths";
}
