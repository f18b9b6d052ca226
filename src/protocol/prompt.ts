import { z } from "zod";
import { dispatchReceiptSchema } from "./dispatch.ts";
import { backendNames, finishReasons, thinkingLevels } from "./enums.ts";
import {
  choiceField,
  countField,
  type Infer,
  limitField,
  nameField,
  needed,
  streamPositionField,
  textField,
} from "./fields.ts";
import { usageSchema } from "./message.ts";

/** An agent as `GET /agents` lists it. */
const agentEntrySchema = z.object({
  name: z.string(),
  path: z.string().meta({ description: "Its file: POSIX, relative to the project root." }),
  /** Whether its file says that requests reach it. */
  triggers: z
    .object({ webhook: z.boolean() })
    .meta({ description: 'Without `webhook` it is not served, unless `server.expose` is "all".' }),
  /** `kit start` answers 404 `agent_not_webhook`. */
  dev_only: z
    .literal(true)
    .optional()
    .meta({ description: "Served because this is `kit dev`: `kit start` does not." }),
});
export interface AgentEntry extends Infer<typeof agentEntrySchema> {}

export const agentListSchema = z.object({ agents: z.array(agentEntrySchema) }).meta({ id: "AgentList" });

/** Longer texts than this do not fit into a body anyway. */
const maxMessage = 1_073_741_824;

const messageField = textField(maxMessage)
  .min(1, "must not be empty")
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode");

export const sessionField = nameField.meta({
  description: "Which conversation of the instance; default `default`.",
});

const oneSessionField = nameField.meta({
  description: "Of this session alone; default: of all sessions of the instance.",
});

// A type that no model takes for a picture would stay in the history, and fail every prompt after it.
const imageTypeField = textField(200).regex(
  /^image\/[\w*.+-]+$/,
  "must be a type of picture, such as image/png",
);

/** A picture in a request: base64 with its media type, or an `https:` address. */
const imageSchema = z.union(
  [
    z.strictObject({
      data: z.base64("must be base64").min(1, "must not be empty"),
      media_type: imageTypeField,
    }),
    z.strictObject({
      url: textField(8_192).regex(/^https:\/\//, "must start with https://"),
      media_type: imageTypeField.optional(),
    }),
  ],
  { error: needed("must be a picture: data and media_type, or url") },
);

export type PromptImage = Infer<typeof imageSchema>;

const namedFile = {
  media_type: textField(200).regex(
    /^[a-z]+\/[\w.+-]{1,100}$/,
    "must be a media type, such as application/pdf or audio/wav",
  ),
  filename: textField(255)
    .regex(/^[^\p{Cc}/\\]{1,255}$/u, "must be a name without folders and control characters")
    .optional(),
};

/** A document or a recording in a request: base64 or an `https:` address, with its media type. */
const fileSchema = z.union(
  [
    z.strictObject({ data: z.base64("must be base64").min(1, "must not be empty"), ...namedFile }),
    z.strictObject({ url: textField(8_192).regex(/^https:\/\//, "must start with https://"), ...namedFile }),
  ],
  { error: needed("must be a file: data or url, and media_type") },
);

export type PromptFile = Infer<typeof fileSchema>;

const modelField = textField(500).min(1, "must not be empty");

/** The choices for one prompt that replace the agent's own. */
export const choicesSchema = z.object({
  model: z
    .union([modelField, z.array(modelField).min(1).max(20)], {
      error: needed("must be provider/model, or a list of up to 20 of them"),
    })
    .optional()
    .meta({
      description: "`provider/model`, or a list where the next one answers when one fails; this time only.",
    }),
  backend: choiceField(backendNames).optional().meta({
    description: "What decides the turns, this time only; default: the agent's backend.",
  }),
});
export interface PromptChoices extends Infer<typeof choicesSchema> {}
/** `provider/model`, or several: where one fails for good, the next one answers. */
export type ModelChoice = NonNullable<PromptChoices["model"]>;

/** The body of `POST /prompt/{session}`: what an agent is asked, without the session. */
export const promptRequestSchema = z.strictObject({
  message: messageField,
  ...choicesSchema.shape,
  role: textField(200).min(1, "must not be empty").optional(),
  thinking_level: choiceField(thinkingLevels).optional(),
  images: z
    .array(imageSchema, { error: needed("must be a list of pictures") })
    .max(100)
    .optional(),
  files: z
    .array(fileSchema, { error: needed("must be a list of files") })
    .max(100)
    .optional()
    .meta({ description: "Documents and recordings, such as a PDF, where the model takes them." }),
});
export interface PromptRequest extends Infer<typeof promptRequestSchema> {}

/** The body of `POST /agents/{name}/{id}`. */
export const promptBodySchema = z.strictObject({
  ...promptRequestSchema.shape,
  session: sessionField.optional(),
});
export interface PromptBody extends Infer<typeof promptBodySchema> {}

/** The outcome of a prompt: `result` of the reply, and of the `result` event of a stream. */
const promptResultSchema = z.object({
  text: z.string(),
  /** Where the agent says what it answers with `output`: the answer, as its schema gives it. */
  result: z.unknown().optional(),
  usage: usageSchema,
  model: z.object({ id: z.string() }),
  metadata: z.record(z.string(), z.unknown()),
});
export interface PromptReply extends Infer<typeof promptResultSchema> {}

export const promptReplySchema = z.object({ result: promptResultSchema }).meta({ id: "PromptReply" });

/** The body of `POST /agents/{name}/{id}/dispatch`. */
export const dispatchBodySchema = z.strictObject({
  input: z
    .unknown()
    .refine((input) => input !== undefined, "is required")
    .refine((input) => input !== "" && input !== null, "must not be empty")
    .meta({ description: "A text is the message; other JSON is given to the agent as its text." }),
  ...choicesSchema.shape,
  session: sessionField.optional(),
});
export interface DispatchBody extends Infer<typeof dispatchBodySchema> {}

/** The reply of an accepted dispatch. */
export const dispatchAcceptedSchema = z
  .object({ status: z.literal("accepted"), ...dispatchReceiptSchema.shape })
  .meta({ id: "DispatchAccepted", description: "The input is on disk." });
export interface DispatchAccepted extends Infer<typeof dispatchAcceptedSchema> {}

/** The query of a stream of events. */
export const instanceEventsQuerySchema = z.strictObject({
  session: oneSessionField.optional(),
  after: streamPositionField.optional(),
});

/** The query of a session's history. */
export const historyQuerySchema = z.strictObject({
  session: sessionField.optional(),
  limit: limitField.optional().meta({
    description:
      "A page of all that was said, what a compaction took out too: the newest messages, 1 to 1,000.",
  }),
  before: countField(2 ** 31 - 1)
    .optional()
    .meta({ description: "`next_before` of the page before: the messages above it. Goes with `limit`." }),
});
export interface HistoryQuery extends Infer<typeof historyQuerySchema> {}

/** The query of a list over the sessions of an instance. */
export const oneSessionQuerySchema = z.strictObject({ session: oneSessionField.optional() });

/** A message of a history, without what only its provider understands. */
const historyMessageSchema = z.object({
  role: z.enum(["user", "assistant", "tool"]),
  content: z.array(z.looseObject({ type: z.string() })),
  timestamp: z.string(),
  /** Set in pages alone, as are the fields below. */
  position: z
    .int()
    .optional()
    .meta({ description: "Names the message within its session: rises, with gaps. In pages alone." }),
  operation_id: z
    .string()
    .optional()
    .meta({ description: "The operation that it belongs to. In pages alone." }),
  source: z
    .string()
    .optional()
    .meta({ description: "Set where kit speaks, and not the user or the model: `guidelines`, `summary`, …" }),
  model: z.string().optional().meta({ description: "Of an answer." }),
  usage: z.optional(usageSchema),
  finish_reason: z.enum(finishReasons).optional(),
});
export interface HistoryMessage extends Infer<typeof historyMessageSchema> {}

export const historySchema = z
  .object({
    messages: z.array(historyMessageSchema),
    event_index: z.int().optional().meta({
      description:
        "Of the newest page: the events after this index tell what these messages do not, the operation under way from its beginning. `after` of the stream.",
    }),
    next_before: z
      .int()
      .optional()
      .meta({ description: "`before` of the page with older messages; absent when there are none." }),
  })
  .meta({ id: "History", description: "Oldest first." });
export interface HistoryPage extends Infer<typeof historySchema> {}

export const abortBodySchema = z.strictObject({ session: oneSessionField.optional() });

export const abortedSchema = z
  .object({ aborted: z.boolean().meta({ description: "Whether anything was running." }) })
  .meta({ id: "Aborted" });

export const deletedSchema = z.object({ deleted: z.literal(true) }).meta({ id: "Deleted" });
