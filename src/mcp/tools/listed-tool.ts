import type { SchemaObject } from "../schemas/normalize-schema.ts";
import type { VettedSchema } from "../schemas/vet-schema.ts";

/** A checked tool of a server: all fields except `definition` are cleaned. */
export interface ListedTool {
  readonly server: string;
  /** The server's name of the tool. */
  readonly name: string;
  /** The name for models: `mcp__<server>__<tool>`. */
  readonly fullName: string;
  readonly title: string;
  readonly description: string;
  readonly schema: VettedSchema;
  /** Whether the server declares that a call with an unknown outcome can be repeated. */
  readonly repeatable: boolean;
  /** The input schema as the server sent it, which the SDK needs. */
  readonly definition: SchemaObject;
  /** Equal for equal definitions; while it is unchanged, the tool is offered as the same object. */
  readonly fingerprint: string;
}

/** The tools of a server, and remarks about tools that cannot be used. */
export interface Catalogue {
  readonly tools: readonly ListedTool[];
  /** Full names of tools beyond kit's limits. */
  readonly leftOut: ReadonlySet<string>;
  /** Whether the server lists more tools than kit reads. */
  readonly isPartial: boolean;
  /** Sentences for the person who configured the server. */
  readonly remarks: readonly string[];
}
