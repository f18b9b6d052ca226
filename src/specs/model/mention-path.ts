/** The longest path a mention can be. */
const maxPathLength = 512;

/** Line and symbol suffixes behind a path: `#L10`, `:10`, `:10-20`, `:10:5`, `::test_name`. */
const suffix = /(?:#.*|::.*|(?::\d+(?:-\d+)?){1,2})$/s;

// Globs, templates, commands and prose hold characters that no path kit looks for has. Brackets,
// parentheses and a dollar sign stay: web frameworks name files `[id].tsx`, `(auth)/`, `$user.ts`.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const notInPath = /[\u0000-\u001f\u007f*?{}<>|"'`;=,!^\\]|:\/\/|\(\)/;
const scheme = /^[a-z][a-z0-9+.-]*:/i;
/** A name with an extension (`a.test.ts`), or a dot file (`.env.local`). */
const fileName = /^[^.].*\.[A-Za-z0-9_]{1,12}$|^\.[A-Za-z][\w.-]*$/;
const version = /^v?[\d.]+$/;

/** Names without an extension that are files all the same. */
const bareNames = new Set(
  "Makefile Dockerfile Containerfile Justfile Procfile Gemfile Rakefile Vagrantfile Jenkinsfile LICENSE CODEOWNERS".split(
    " ",
  ),
);

/**
 * The path in a piece of inline code or a link destination, without its anchor, line or symbol
 * suffix, or nothing where the text cannot name one file: URLs, globs, folders, calls, versions.
 */
export function toMentionPath(written: string): string | undefined {
  if (written.length === 0 || written.length > maxPathLength) return undefined;
  const path = written.includes(":") || written.includes("#") ? written.replace(suffix, "") : written;
  const slash = path.lastIndexOf("/");
  // Most inline code is a name of the program, with neither a folder nor an extension.
  if (slash === -1 && !path.includes(".") && !bareNames.has(path)) return undefined;
  if (slash === path.length - 1 || path.startsWith("@") || path.startsWith("-")) return undefined;
  if (notInPath.test(path) || scheme.test(path) || version.test(path)) return undefined;
  const name = path.slice(slash + 1);
  if (name === "." || name === "..") return undefined;
  return slash !== -1 || bareNames.has(name) || fileName.test(name) ? path : undefined;
}
