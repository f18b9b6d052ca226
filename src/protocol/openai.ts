import { z } from "zod";
import { type Infer, nameField, textField } from "./fields.ts";

/** A body of these protocols can have fields that are newer than kit, so unknown ones are ignored. */
const partSchema = z.looseObject({ type: textField(100) });
export interface OpenAiPart extends Infer<typeof partSchema> {}

const contentField = z
  .union([z.string(), z.array(partSchema).max(1_000)], { error: "must be a text or a list of parts" })
  .nullish();

const agentField = nameField.meta({ description: "The name of an agent: `GET /v1/models` lists them." });
const flagField = z.boolean().nullish();
const metadataField = z.record(z.string(), z.unknown()).nullish();

const functionShape = {
  name: z.string().optional(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
};
const toolSchema = z.looseObject({
  type: z.string(),
  ...functionShape,
  function: z.looseObject(functionShape).optional(),
});
export interface OpenAiTool extends Infer<typeof toolSchema> {}

const toolFields = {
  tools: z.array(toolSchema).max(128).nullish().meta({
    description:
      "Functions of the caller. A call of one ends the answer; its result goes on in the same session.",
  }),
  tool_choice: z.unknown().optional(),
};

const chatMessageSchema = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
  content: contentField,
  tool_calls: z.array(z.unknown()).nullish(),
  tool_call_id: z.string().nullish(),
});
export interface OpenAiMessage extends Infer<typeof chatMessageSchema> {}

/** The body of `POST /v1/chat/completions`. */
export const chatCompletionBodySchema = z.looseObject({
  model: agentField,
  messages: z
    .array(chatMessageSchema)
    .min(1, "must not be empty")
    .max(1_000)
    .meta({ description: "The conversation: kit begins a session with it. The last one is the user's." }),
  stream: flagField,
  stream_options: z.looseObject({ include_usage: flagField }).nullish(),
  reasoning_effort: z.string().nullish(),
  ...toolFields,
  functions: z.array(z.unknown()).nullish(),
  n: z.number().nullish(),
  logprobs: flagField,
  response_format: z.looseObject({ type: z.string() }).nullish(),
});
export interface ChatCompletionBody extends Infer<typeof chatCompletionBodySchema> {}

const itemSchema = z.looseObject({
  type: z.string().nullish(),
  role: z.string().nullish(),
  content: contentField,
  id: z.string().nullish(),
  call_id: z.string().nullish(),
});
export interface OpenAiItem extends Infer<typeof itemSchema> {}

/** The body of `POST /v1/responses`. */
export const responseBodySchema = z.looseObject({
  model: agentField,
  input: z.union([textField(1_073_741_824), z.array(itemSchema).min(1, "must not be empty").max(1_000)], {
    error: "must be a text or a list of items",
  }),
  instructions: z.string().nullish(),
  previous_response_id: textField(200)
    .nullish()
    .meta({ description: "Goes on in the session of that response, which must be its newest." }),
  conversation: z
    .union([nameField, z.looseObject({ id: nameField })], { error: "must be a name, or an object with `id`" })
    .nullish()
    .meta({ description: "The session; kit begins it if there is none of this name." }),
  stream: flagField,
  background: flagField.meta({
    description: "Answers at once; `GET /v1/responses/{response_id}` tells more.",
  }),
  store: flagField.meta({
    description:
      "If false, the work ends with the connection, and the response has an id that finds nothing.",
  }),
  metadata: metadataField,
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  ...toolFields,
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  prompt: z.unknown().optional(),
});
export interface ResponseBody extends Infer<typeof responseBodySchema> {}

/** The query of `GET /v1/responses/{response_id}`. */
export const responseQuerySchema = z.strictObject({
  stream: z.enum(["true", "false"]).optional(),
  starting_after: z.int().min(0).optional().meta({
    description: "The `sequence_number` of the last event that was read; only with `stream=true`.",
  }),
});

export const openAiModelsSchema = z
  .object({
    object: z.literal("list"),
    data: z.array(
      z.object({
        id: z.string(),
        object: z.literal("model"),
        created: z.int(),
        owned_by: z.literal("kit"),
      }),
    ),
  })
  .meta({ id: "OpenAiModels", description: "The agents that the sender may prompt." });

const usageSchema = z.record(z.string(), z.unknown());

export const chatCompletionSchema = z
  .object({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: z.int(),
    model: z.string(),
    choices: z.array(z.record(z.string(), z.unknown())),
    usage: usageSchema,
  })
  .meta({ id: "ChatCompletion" });
export interface ChatCompletion extends Infer<typeof chatCompletionSchema> {}

export const responseSchema = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: z.int(),
    completed_at: z.int().nullable(),
    status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
    model: z.string(),
    output: z.array(z.record(z.string(), z.unknown())),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.object({ reason: z.string() }).nullable(),
    usage: usageSchema.nullable(),
  })
  .meta({ id: "OpenAiResponse" });
export interface OpenAiResponse extends Infer<typeof responseSchema> {}

export const openAiErrorSchema = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .meta({ id: "OpenAiError" });
export interface OpenAiError extends Infer<typeof openAiErrorSchema> {}
