/** The longest name or id, in bytes of UTF-8. */
export const maxNameBytes = 128;

/** Invisible marks that change the direction of text or break a line: with them, one name can look like another. */
const invisibleMarks = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

/** A regular expression for JSON Schemas: all rules of `faultOfName` but the number of bytes and well-formed Unicode. */
export const namePattern =
  "^(?!\\.{1,2}$)[^/\\\\\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]+$";

/**
 * Returns why a text cannot be a name or id in one path segment: it is empty, too long, a dot segment, or it holds
 * half a character, a separator, a control character or a mark of text direction.
 */
export function faultOfName(text: string, maxBytes: number = maxNameBytes): string | undefined {
  if (text === "") return "must not be empty";
  // JSON can hold half of a surrogate pair. Stores and URLs cannot, and would confuse two such names.
  if (!text.isWellFormed()) return "must be well-formed Unicode";
  // A UTF-16 unit takes at most three bytes, so only long names are encoded and counted.
  if (text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes)
    return `must have at most ${maxBytes} bytes`;
  if (text === "." || text === ".." || /[/\\\p{Cc}]/u.test(text))
    return "must not hold separators, dot segments or control characters";
  if (invisibleMarks.test(text)) return "must not hold marks of text direction";
  return undefined;
}

/**
 * The stricter rule for a name that a project defines: of an agent, a workflow, a webhook, a skill or a role. People
 * type such a name, URLs hold it and models read it.
 */
export function faultOfDefinedName(text: string): string | undefined {
  const fault = faultOfName(text);
  if (fault !== undefined) return fault;
  if (/^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._-]*$/u.test(text) && !text.endsWith(" ")) return undefined;
  return "must begin with a letter or a digit, and hold only letters, digits, spaces, ., _ and -";
}

/** Returns the same key for names that a reader or a file system can confuse: `Review` and `review`. */
export function nameKey(name: string): string {
  return name.normalize("NFKC").toLowerCase();
}

/** Quotes a name for a message: escapes the characters that a terminal or a log interprets, and cuts a long name. */
export function quoteName(name: string): string {
  const short = name.length > 80 ? `${name.slice(0, 80)}…` : name;
  return JSON.stringify(short).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Files of variables: `.env`, `.env.local`, `.envrc`. */
const variables = /(?:^|\/)\.env(?:rc|\.[^/]+)?$/;
/** Endings of files that show which variables there are, without secrets. */
const sample = /\.(?:example|sample|template|dist|defaults?)$/;
/** Files in which programs store keys and passwords. */
const keys =
  /(?:^|\/)(?:\.npmrc|\.netrc|\.pypirc|\.pgpass|\.git-credentials|\.dockercfg|id_(?:rsa|dsa|ecdsa|ed25519)|credentials\.json|service-account[^/]*\.json|[^/]+\.(?:pem|key|p12|pfx|jks|keystore))$/;

/** Whether a path, in lower case, names a file of variables that can hold secrets. */
export function isVariablesName(path: string): boolean {
  return variables.test(path) && !sample.test(path);
}

/** Whether the name of a file shows that it holds secrets; kit sends no such file to another computer. */
export function isSecretName(path: string): boolean {
  const name = path.toLowerCase();
  return isVariablesName(name) || keys.test(name);
}

/** Whether Git takes a folder with entries of these names for a repository, which it does under any name of the folder. */
export function isRepositoryFolder(names: Pick<ReadonlySet<string>, "has">): boolean {
  return names.has("HEAD") && ((names.has("objects") && names.has("refs")) || names.has("commondir"));
}

/** Values that look like a key, whatever the name of their variable. */
export const keyPattern =
  /^(?=[\s\S]*\d)(?:(?:sk|pk|rk|whsec|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abeoprs]|xapp|npm|pypi|hf|gsk|xai|r8|dckr_pat|shpat|lin_api|ntn|tvly|pplx|dop_v1|figd|sntrys|SG)[-_.]\S{16,}|(?:AKIA|ASIA|AIza|ya29)\S{12,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+)$/;
