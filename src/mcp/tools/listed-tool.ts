import type { SchemaObject } from "../schemas/normalize-schema.ts";
import type { VettedSchema } from "../schemas/vet-schema.ts";

/** A tool of a server, as kit knows it: nothing in it is as the server sent it, but for `definition`. */
export interface ListedTool {
  readonly server: string;
  /** The server's own name of it. */
  readonly name: string;
  /** The name for models: `mcp__<server>__<tool>`. */
  readonly fullName: string;
  readonly title: string;
  readonly description: string;
  readonly schema: VettedSchema;
  /** Whether a call with an unknown outcome may be repeated, as the server says. */
  readonly repeatable: boolean;
  /** The input schema as it was sent, for what the protocol derives from it. */
  readonly definition: SchemaObject;
  /** Equal for equal definitions: a tool is offered as the same object while this is the same. */
  readonly fingerprint: string;
}

/** The tools of a server, and what is wrong with what it offers. */
export interface Catalogue {
  readonly tools: readonly ListedTool[];
  /** Whole names of tools that the server offers past what kit takes. */
  readonly leftOut: ReadonlySet<string>;
  /** The server lists more tools than kit reads. */
  readonly isPartial: boolean;
  /** Sentences for the person who configured the server. */
  readonly remarks: readonly string[];
}
