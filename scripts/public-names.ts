import { readFileSync } from "node:fs";
import { type Declaration, exportedDeclarations, walk } from "./declarations.ts";

/**
 * Returns the public names of sources that break a rule: a function or class without an `@example`, and an object type with names of
 * both cases. Records of the wire and of files are snake_case, everything else is camelCase; `@deprecated` names do not count.
 */
export function faultsOfPublicNames(entries: readonly string[]): readonly { file: string; fault: string }[] {
  const found = new Map<string, { file: string; fault: string }>();
  for (const one of entries.flatMap(exportedDeclarations)) {
    const text = readFileSync(one.file, "utf8");
    const fault = missesExample(one, text) ?? mixesCases(one, text);
    if (fault !== undefined) found.set(`${one.file}#${one.name}`, { file: one.file, fault });
  }
  return [...found.values()];
}

function missesExample({ name }: Declaration, text: string): string | undefined {
  const declaration = new RegExp(`^export (?:abstract )?(?:async )?(?:function\\*?|class) ${name}\\b`, "m");
  const at = declaration.exec(text)?.index;
  if (at === undefined) return undefined;
  const before = text.slice(0, at).trimEnd();
  const comment = before.endsWith("*/") ? before.slice(before.lastIndexOf("/**")) : "";
  return comment.includes("@example") ? undefined : `${name} is public and has no @example.`;
}

function mixesCases({ name, items }: Declaration, text: string): string | undefined {
  let mixed: string | undefined;
  walk(items, (node) => {
    const members =
      node.type === "TsTypeLiteral" ? node.members : node.type === "TsInterfaceBody" && node.body;
    if (!Array.isArray(members)) return;
    const names = members
      .map(({ key }) => String(key?.value ?? ""))
      .filter((key) => !new RegExp(`@deprecated[^\\n]*\\*/\\s+(?:readonly )?${key}\\b`).test(text));
    const snake = names.find((key) => /[a-z]_[a-z]/.test(key));
    const camel = names.find((key) => /[a-z][A-Z]/.test(key));
    if (snake !== undefined && camel !== undefined) mixed = `${name} mixes cases: ${snake}, ${camel}.`;
  });
  return mixed;
}
