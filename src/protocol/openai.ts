import { z } from "zod";
import { type Infer, nameField, textField } from "./fields.ts";

// A body of these protocols can have fields that are newer than kit, so unknown ones pass.

const partSchema = z.looseObject({ type: textField(100) });
export interface OpenAiPart extends Infer<typeof partSchema> {}

/** A message of Chat Completions, or an item of Responses. */
const itemSchema = z.looseObject({
  type: z.string().nullish(),
  role: z.string().nullish(),
  content: z
    .union([z.string(), z.array(partSchema).max(1_000)], { error: "must be a text or a list of parts" })
    .nullish(),
  id: z.string().nullish(),
  call_id: z.string().nullish(),
  tool_call_id: z.string().nullish(),
});
export interface OpenAiItem extends Infer<typeof itemSchema> {}

const itemsField = z
  .array(itemSchema, { error: "must be a list" })
  .min(1, "must not be empty")
  .max(1_000, "must have at most 1,000 entries");

const functionShape = {
  name: z.string().optional(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
};
const flagField = z.boolean().nullish();

const bodyShape = {
  model: nameField.meta({ description: "The name of an agent: `GET /v1/models` lists them." }),
  stream: flagField,
  tools: z
    .array(
      z.looseObject({ type: z.string(), ...functionShape, function: z.object(functionShape).optional() }),
    )
    .max(128)
    .nullish()
    .meta({
      description:
        "Functions of the caller. A call of one ends the answer; its result goes on in the same session.",
    }),
  tool_choice: z.unknown().optional(),
};

/** The body of `POST /v1/chat/completions`. */
export const chatCompletionBodySchema = z.looseObject({
  ...bodyShape,
  messages: itemsField.meta({
    description:
      "The conversation: kit begins a session with it. The last one is the user's, or results of calls.",
  }),
  stream_options: z.looseObject({ include_usage: flagField }).nullish(),
  reasoning_effort: z.string().nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
});
export interface ChatCompletionBody extends Infer<typeof chatCompletionBodySchema> {}

/** The body of `POST /v1/responses`. */
export const responseBodySchema = z.looseObject({
  ...bodyShape,
  input: z.union([textField(1_073_741_824), itemsField], { error: "must be a text or a list of items" }),
  instructions: z.string().nullish(),
  previous_response_id: textField(200)
    .nullish()
    .meta({ description: "Goes on in the session of that response, which must be its newest." }),
  conversation: z
    .union([nameField, z.looseObject({ id: nameField })], { error: "must be a name, or an object with `id`" })
    .nullish()
    .meta({ description: "The session; kit begins it if there is none of this name." }),
  background: flagField.meta({
    description: "Answers at once; `GET /v1/responses/{response_id}` tells more.",
  }),
  store: flagField.meta({
    description:
      "If false, the work ends with the connection, and the response has an id that finds nothing.",
  }),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
});
export interface ResponseBody extends Infer<typeof responseBodySchema> {}

/** The query of `GET /v1/responses/{response_id}`. */
export const responseQuerySchema = z.strictObject({
  stream: z.enum(["true", "false"]).optional(),
  starting_after: z.int().min(0).optional().meta({
    description: "The `sequence_number` of the last event that was read; only with `stream=true`.",
  }),
});

const modelSchema = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.int(),
  owned_by: z.string(),
});
export const openAiModelsSchema = z
  .object({ object: z.literal("list"), data: z.array(modelSchema) })
  .meta({ id: "OpenAiModels", description: "The agents that the sender may prompt." });

const partOfReply = z.record(z.string(), z.unknown());

export const chatCompletionSchema = z
  .object({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: z.int(),
    model: z.string(),
    choices: z.array(partOfReply),
    usage: partOfReply,
  })
  .meta({ id: "ChatCompletion" });
export interface ChatCompletion extends Infer<typeof chatCompletionSchema> {}

export const responseSchema = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
    output: z.array(partOfReply),
  })
  .meta({ id: "OpenAiResponse" });
export interface OpenAiResponse extends Infer<typeof responseSchema> {}

const nullableText = z.string().nullable();
export const openAiErrorSchema = z
  .object({
    error: z.object({ message: z.string(), type: z.string(), param: nullableText, code: nullableText }),
  })
  .meta({ id: "OpenAiError" });
export interface OpenAiError extends Infer<typeof openAiErrorSchema> {}
