import { z } from "zod";
import { KitError } from "../../../base/kit-error.ts";
import type { ProjectSpecs } from "../../../project/project.ts";
import { type Infer, textField } from "../../../protocol/fields.ts";
import { type SpecMetadata, specBlockSchema } from "../../../protocol/spec-block.ts";
import { maxListedContent, nextPageMark, partOf, placeOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { nextCursor } from "./tool-fields.ts";

const input = z.strictObject({
  id: textField(1_000).min(1).meta({ description: "The block's id, from spec_search." }),
  cursor: nextCursor.exactOptional(),
});
type Input = Infer<typeof input>;

const output = z.object({
  spec: specBlockSchema,
  metadata_cut: z.array(z.string()).exactOptional(),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;

/** `spec_get`: one spec block with its content, links and criteria. */
export function specGetTool(specs: ProjectSpecs): ReadTool<Input, Output> {
  return {
    name: "spec_get",
    title: "One spec",
    description:
      "Returns one spec block: its full text, acceptance criteria, related specs, and the code and tests it names.",
    input,
    output,
    run: ({ id, cursor }) => {
      const block = specs.get(id);
      if (block === undefined) throw unknownSpec(id);
      const { content, ...rest } = partOf(block.content, cursor);
      const { metadata, cut } = boundedMetadata(block.metadata);
      return {
        spec: { ...block, content, metadata },
        ...(cut.length === 0 ? {} : { metadata_cut: cut }),
        ...rest,
      };
    },
    toText: (found) => toText(found, specs.toolOf(found.spec)),
  };
}

function unknownSpec(id: string): KitError {
  const message = `There is no spec block with the id "${id}"; spec_search finds them.`;
  return new KitError({ code: "spec_not_found", message });
}

function boundedMetadata(metadata: SpecMetadata): { metadata: SpecMetadata; cut: readonly string[] } {
  const isShort = ([, value]: readonly [string, unknown]): boolean =>
    (JSON.stringify(value)?.length ?? 0) <= maxListedContent;
  const entries = Object.entries(metadata);
  return {
    metadata: Object.fromEntries(entries.filter(isShort)),
    cut: entries.filter((entry) => !isShort(entry)).map(([key]) => key),
  };
}

function toText({ spec, metadata_cut = [], next_cursor }: Output, tool: string): string {
  const { id, title, content, spec_type, lifecycle, priority, path, metadata } = spec;
  const location = placeOf(path, metadata.source?.start_line);
  const kind = `${tool} ${spec_type}, ${lifecycle}, priority ${priority}`;
  const links = [
    listed("Related", metadata.related_specs),
    listed("Code", metadata.code_refs),
    listed("Tests", metadata.test_refs),
    listed("[cut] Too long to show", metadata_cut),
  ];
  const parts = [
    `# ${title}\n(${kind}; ${location}; id ${id})`,
    content,
    links.filter((line) => line !== "").join("\n"),
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}${nextPageMark(next_cursor)}`;
}

function listed(name: string, values: readonly string[] | undefined): string {
  return values === undefined || values.length === 0 ? "" : `${name}: ${values.join(", ")}`;
}
