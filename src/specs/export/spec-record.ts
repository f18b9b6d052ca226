import type { SpecBlock } from "../../protocol/spec-block.ts";

/** A block as a record of a file with a path of its own: what the file says by itself is left out. */
export function toRecord(block: SpecBlock): Readonly<Record<string, unknown>> {
  const { path: _path, metadata, framework, ...fields } = block;
  const { source: _source, origin, ...declared } = metadata;
  return {
    ...fields,
    ...(framework !== "custom" && { framework }),
    ...(typeof origin === "string" && { path: origin }),
    ...(Object.keys(declared).length > 0 && { metadata: declared }),
  };
}
