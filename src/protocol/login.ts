import { z } from "zod";
import type { Infer } from "./fields.ts";

export const begunLoginSchema = z
  .object({
    url: z.string().meta({ description: "The page of the authorization server, for the browser to open." }),
    expires_at: z.string().meta({ description: "When the login is no longer open; ISO 8601." }),
  })
  .meta({ id: "BegunLogin" });
/** A login that waits for the browser which began it. */
export interface BegunLogin extends Infer<typeof begunLoginSchema> {}

export const finishedLoginSchema = z
  .object({
    server: z.string(),
    issuer: z.string().meta({ description: "The authorization server." }),
    scope: z.string().optional(),
  })
  .meta({ id: "FinishedLogin" });
