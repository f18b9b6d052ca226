import type { Diagnostic } from "../../protocol/diagnostic.ts";

/** A warning about the structure of a file: something that its tool refuses, or that kit reads otherwise than it looks. */
export function structureWarning(
  { path, line }: Pick<Diagnostic, "path" | "line">,
  code: string,
  message: string,
): Diagnostic {
  return { severity: "warning", rule: "structure", code, message, path, ...(line !== undefined && { line }) };
}
