import { extname, relative, sep } from "node:path";
import { type LoadedConfig, loadConfig } from "../../app/config/load-config.ts";
import { parseConfig } from "../../app/config/parse-config.ts";
import { parseToml, setTomlKey, valueAt } from "../../app/config/set-toml-key.ts";
import { readFileInside, writeFileInside } from "../../project/features/write-file.ts";
import type { Addition } from "./additions.ts";

/** What the configuration of a project lacks for an addition. */
export interface ConfigurationChange {
  /** The file, relative to the root. */
  readonly file: string;
  /** Its lines, as they are added or are to be added by hand. */
  readonly lines: readonly string[];
  /** Keys that say something else: they are the person's, and stay. */
  readonly kept: readonly { readonly key: string; readonly value: string; readonly has: unknown }[];
  /** Writes the file. Throws `conflict` where somebody has changed it meanwhile. Absent where a person has to. */
  readonly write?: () => Promise<void>;
}

/** What to change, tried out and not written; no lines where all keys are there. */
export async function planConfiguration(
  { configuration = {} }: Addition,
  { root, loaded }: { readonly root: string; readonly loaded: LoadedConfig },
): Promise<ConfigurationChange> {
  const file = loaded.file === undefined ? "kit.toml" : relative(root, loaded.file).split(sep).join("/");
  const isToml = extname(file) === ".toml";
  const isInside = !file.startsWith("../");
  const bytes = isToml && isInside ? await readFileInside(root, { path: file }) : undefined;
  const text = bytes === undefined ? "" : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  // Without the variables that win over a file: what it says itself is asked for.
  const own =
    loaded.file === undefined
      ? {}
      : (await loadConfig({ cwd: root, file: loaded.file, environment: {} })).config;
  const keys = Object.entries(configuration).map(([key, value]) => ({
    key,
    value,
    has: valueAt(own, key.split(".")),
  }));
  const kept = keys.filter(({ value, has }) => has !== undefined && has !== value);
  const missing = keys.filter(({ has }) => has === undefined);
  if (missing.length === 0) return { file, lines: [], kept };
  const lines = isToml
    ? missing.map(({ key, value }) => `${key} = ${JSON.stringify(value)}`)
    : codeLines(missing);
  if (!isToml || !isInside) return { file, lines, kept };
  let changed: string | undefined = text;
  for (const { key, value } of missing)
    changed = changed === undefined ? undefined : setTomlKey(changed, key.split("."), value);
  if (changed === undefined || parseConfig(parseToml(changed)).issues.length > 0)
    return { file, lines, kept };
  const content = changed;
  return {
    file,
    lines,
    kept,
    write: () =>
      writeFileInside({ root, readOnly: false }, { path: file, content, expected: bytes ?? null }).then(
        () => undefined,
      ),
  };
}

/** As they stand in `kit.config.ts`: `agent: { sandbox: "e2b" },`. */
function codeLines(keys: readonly { readonly key: string; readonly value: string }[]): readonly string[] {
  return keys.map(({ key, value }) => {
    const path = key.split(".");
    const inner = `${path.at(-1)}: ${JSON.stringify(value)}`;
    return `${path.slice(0, -1).reduceRight((text, name) => `${name}: { ${text} }`, inner)},`;
  });
}
