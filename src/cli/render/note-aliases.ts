import type { Guideline } from "../../protocol/guideline.ts";
import type { Output } from "../output.ts";
import { safeLine } from "../text/safe-text.ts";

/** Says under which other names the files of guidelines are known, once per file. */
export function noteAliases(output: Output, guidelines: readonly Guideline[]): void {
  const files = new Map(guidelines.map(({ source_file, aliases = [] }) => [source_file, aliases]));
  for (const [file, aliases] of files) {
    if (aliases.length === 0) continue;
    output.note(output.noteStyle("dim", safeLine(`${file} is also ${aliases.join(", ")}.`)));
  }
}
