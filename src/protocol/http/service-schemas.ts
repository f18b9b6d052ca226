import { z } from "zod";
import { type ErrorCode, type ErrorEnvelope, errorCodes } from "../error-code.ts";
import type { IndexingProgress } from "../indexing.ts";
import { indexingSchema } from "./fields.ts";

/** The reply of `GET /health`. */
export interface Health {
  readonly ok: true;
  readonly name: "kit";
  readonly version: string;
}

export const healthSchema: z.ZodType<Health> = z
  .object({ ok: z.literal(true), name: z.literal("kit"), version: z.string() })
  .meta({ id: "Health" });

/** The reply of `GET /` to a client that asks for JSON: what is here, and where to go on. */
export interface Overview {
  readonly name: "kit";
  readonly version: string;
  readonly project: string;
  readonly specs: number;
  readonly specs_by_framework: Readonly<Record<string, number>>;
  readonly guidelines: number;
  readonly indexing?: IndexingProgress;
  readonly guidelines_by_source: Readonly<Record<string, number>>;
  /** Names of those that can be reached; absent where nothing can be prompted. */
  readonly agents?: readonly string[];
  readonly workflows?: readonly string[];
  readonly links: Readonly<Record<string, string>>;
}

export const overviewSchema: z.ZodType<Overview> = z
  .object({
    name: z.literal("kit"),
    version: z.string(),
    project: z.string(),
    specs: z.int(),
    specs_by_framework: z.record(z.string(), z.int()),
    guidelines: z.int(),
    guidelines_by_source: z.record(z.string(), z.int()),
    indexing: indexingSchema,
    agents: z.array(z.string()).exactOptional().meta({ description: "Names of those that can be reached." }),
    workflows: z.array(z.string()).exactOptional(),
    links: z.record(z.string(), z.string()),
  })
  .meta({ id: "Overview" });

const codes = Object.keys(errorCodes).filter((code): code is ErrorCode => code in errorCodes);

export const errorEnvelopeSchema: z.ZodType<ErrorEnvelope> = z
  .object({
    error: z.object({
      type: z.enum(codes),
      message: z.string(),
      details: z.string(),
      meta: z
        .looseObject({
          issues: z.array(z.object({ path: z.string(), message: z.string() })).exactOptional(),
        })
        .exactOptional(),
      dev: z.record(z.string(), z.unknown()).exactOptional(),
    }),
  })
  .meta({ id: "Error", description: "The body of every error reply." });
