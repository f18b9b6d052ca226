import { suggest } from "../../base/suggest.ts";
import type { ErrorIssue } from "../../protocol/error-code.ts";
import { parseConfig } from "./parse-config.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

type Conversion = (written: string) => unknown;

const asIs: Conversion = (written) => written;
const words: Conversion = (written) => written.split(/[\s,]+/).filter((word) => word !== "");
const wholeNumber: Conversion = (written) => (/^\d{1,15}$/.test(written) ? Number(written) : written);
const booleans = new Map([
  ["1", true],
  ["true", true],
  ["yes", true],
  ["on", true],
  ["0", false],
  ["false", false],
  ["no", false],
  ["off", false],
]);
const yesOrNo: Conversion = (written) => booleans.get(written.toLowerCase()) ?? written;

/** Variable, key of `server`, and how the text becomes a value. */
const serverVariables: readonly (readonly [string, string, Conversion])[] = [
  ["KIT_HOST", "host", asIs],
  ["KIT_PORT", "port", wholeNumber],
  ["KIT_API_KEYS", "api_keys", words],
  ["KIT_ALLOWED_HOSTS", "allowed_hosts", words],
  ["KIT_ALLOWED_ORIGINS", "allowed_origins", words],
  ["KIT_READ_ONLY", "read_only", yesOrNo],
  ["KIT_MAX_BODY_BYTES", "max_body_bytes", wholeNumber],
];

/**
 * The part of the configuration that the environment gives. Empty variables count as unset; lists
 * are separated by commas or white space.
 */
export function parseEnvironment(environment: Environment): {
  readonly server: Readonly<Record<string, unknown>>;
  readonly issues: readonly ErrorIssue[];
  /** Sentences about names that look like a slip of the pen. */
  readonly warnings: readonly string[];
} {
  const server: Record<string, unknown> = {};
  const variableOf = new Map<string, string>();
  for (const [variable, key, convert] of serverVariables) {
    const written = environment[variable]?.trim();
    if (written === undefined || written === "") continue;
    server[key] = convert(written);
    variableOf.set(`server.${key}`, variable);
  }
  const issues = parseConfig({ server }).issues.map(({ path, message }) => ({
    path: variableOf.get(path) ?? path,
    message,
  }));
  return { server, issues, warnings: misspelled(environment) };
}

// A misspelled KIT_API_KEYS would leave a server open without a word.
function misspelled(environment: Environment): readonly string[] {
  const names = serverVariables.map(([variable]) => variable);
  return Object.keys(environment).flatMap((variable) => {
    if (!variable.startsWith("KIT_") || names.includes(variable)) return [];
    const near = suggest(
      variable.slice("KIT_".length),
      names.map((known) => known.slice("KIT_".length)),
    );
    return near === undefined ? [] : [`${variable} is no variable of kit; did you mean KIT_${near}?`];
  });
}
