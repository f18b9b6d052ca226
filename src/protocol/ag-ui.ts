import { z } from "zod";
import { type Infer, nameField, textField } from "./fields.ts";

const partSchema = z.looseObject({ type: textField(100) });
const messageSchema = z.looseObject({
  id: textField(128).min(1, "must not be empty"),
  role: textField(100),
  content: z
    .union([z.string(), z.array(partSchema).max(1_000)], { error: "must be a text or parts" })
    .nullish(),
  toolCallId: textField(200).optional(),
});
export interface AgUiMessage extends Infer<typeof messageSchema> {}

const toolSchema = z.looseObject({
  name: z.string(),
  description: z.string().optional(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
});

const resumeSchema = z.looseObject({
  interruptId: textField(200),
  status: z.enum(["resolved", "cancelled"]),
  payload: z.unknown().optional(),
});
export interface AgUiResume extends Infer<typeof resumeSchema> {}

/** AG-UI's `RunAgentInput`, as far as kit reads it. */
export const agUiBodySchema = z.looseObject({
  threadId: nameField.meta({ description: "The session." }),
  runId: textField(200).min(1, "must not be empty"),
  messages: z.array(messageSchema).max(10_000).default([]),
  tools: z.array(toolSchema).max(128).default([]),
  resume: z.array(resumeSchema).max(1_000).default([]),
});
export interface AgUiBody extends Infer<typeof agUiBodySchema> {}

/** An event of AG-UI. */
export const agUiEventSchema = z.looseObject({ type: z.string() }).meta({ id: "AgUiEvent" });
export interface AgUiEvent extends Infer<typeof agUiEventSchema> {}
