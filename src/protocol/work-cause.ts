import { z } from "zod";
import type { Infer } from "./fields.ts";

/** The delivery, run, prompt, schedule or sender that began a run or a dispatch. */
export const workCauseSchema = z
  .union([
    z.object({
      type: z.literal("webhook"),
      webhook: z.string(),
      delivery_id: z
        .string()
        .meta({ description: "The delivery's id in the terms of its scheme, the first 200 characters." }),
    }),
    z.object({ type: z.literal("run"), run_id: z.string() }),
    z.object({
      type: z.literal("prompt"),
      agent: z.string(),
      instance_id: z.string(),
      session: z.string(),
      operation_id: z.string(),
      dispatch_id: z
        .string()
        .optional()
        .meta({ description: "Set if the prompt was dispatched and is not part of a run." }),
      run_id: z.string().optional().meta({ description: "The run whose agent was prompted." }),
    }),
    z.object({ type: z.literal("schedule"), schedule: z.string() }),
    z.object({ type: z.literal("sender"), principal: z.string() }),
  ])
  .meta({
    id: "WorkCause",
    description: "The delivery, run, prompt, schedule or sender that began the work.",
  });
export type WorkCause = Infer<typeof workCauseSchema>;
