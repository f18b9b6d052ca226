import { compileGlob } from "../../../base/glob/glob.ts";
import type { ParsedSpecs, SpecAdapter, SpecSource } from "../../adapter.ts";
import { dataFormatOf } from "../../data/read-records.ts";
import { readDataFile } from "./data-file.ts";
import { readMarkdownFile } from "./markdown-file.ts";
import type { CustomDefaults } from "./record-draft.ts";
import { writeCustom } from "./write-custom.ts";

/** A source of the project's own, as the config names it. */
export interface CustomSource extends CustomDefaults {
  /** A glob, relative to the project root. */
  readonly include: string;
}

/**
 * Creates the adapter of the files that the config names. The first source whose glob matches gives
 * a file's defaults.
 *
 * `.json`, `.jsonl`, `.ndjson`, `.yaml` and `.yml` files hold spec blocks with their ids; any other
 * file is Markdown and one block, with its fields in the front matter. There, an id, title and type
 * need not be declared: they are the file's name, its first heading, and "requirement".
 */
export function createCustomAdapter(sources: readonly CustomSource[]): SpecAdapter {
  const globs = sources.map((source) => ({ source, glob: compileGlob(source.include) }));
  const sourceOf = (path: string): CustomSource | undefined =>
    globs.find(({ glob }) => glob.matches(path))?.source;
  return {
    name: "custom",
    framework: "custom",
    matches: (path) => sourceOf(path) !== undefined,
    parse: (source) => parse(source, sourceOf(source.path) ?? {}),
    write: writeCustom,
  };
}

function parse(source: SpecSource, { spec_type, tags }: CustomDefaults): ParsedSpecs {
  const defaults = { ...(spec_type !== undefined && { spec_type }), ...(tags !== undefined && { tags }) };
  const format = dataFormatOf(source.path);
  return format === undefined ? readMarkdownFile(source, defaults) : readDataFile(source, format, defaults);
}
