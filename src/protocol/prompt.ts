import { z } from "zod";
import { dispatchReceiptSchema } from "./dispatch.ts";
import { backendNames, finishReasons, maxModelAttempts, thinkingLevels } from "./enums.ts";
import { eventErrorSchema } from "./errors.ts";
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
  /** Whether the agent's file has a `webhook` export. */
  triggers: z
    .object({ webhook: z.boolean() })
    .meta({ description: 'Agents without `webhook` are not served, unless `server.expose` is "all".' }),
  /** `kit start` answers 404 `agent_not_webhook`. */
  dev_only: z
    .literal(true)
    .optional()
    .meta({ description: "Served by `kit dev` only; `kit start` does not serve this agent." }),
});
export interface AgentEntry extends Infer<typeof agentEntrySchema> {}

export const agentListSchema = z.object({ agents: z.array(agentEntrySchema) }).meta({ id: "AgentList" });

/** A longer text would exceed the limit of a body. */
const maxMessage = 1_073_741_824;

const messageField = textField(maxMessage)
  .min(1, "must not be empty")
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode");

export const sessionField = nameField.meta({
  description: "The session (conversation) of the instance; default `default`.",
});

const oneSessionField = nameField.meta({
  description: "Only this session; default: all sessions of the instance.",
});

// An image type that no model accepts would stay in the history and fail every later prompt.
const imageTypeField = textField(200).regex(/^image\/[\w*.+-]+$/, "must be an image type, such as image/png");

/** An image in a request: base64 with its media type, or an `https:` address. */
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
  { error: needed("must be an image: data and media_type, or url") },
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

/** Settings of one prompt that replace the agent's own. */
export const choicesSchema = z.object({
  model: z
    .union([modelField, z.array(modelField).min(1).max(20)], {
      error: needed("must be provider/model, or a list of up to 20 of them"),
    })
    .optional()
    .meta({
      description:
        "For this prompt only: `provider/model`, or a list; if a model fails, the next one is tried.",
    }),
  backend: choiceField(backendNames).optional().meta({
    description: "For this prompt only: the backend that runs the turns; default: the agent's backend.",
  }),
});
export interface PromptChoices extends Infer<typeof choicesSchema> {}
/** `provider/model`, or several: if a model fails permanently, the next one is tried. */
export type ModelChoice = NonNullable<PromptChoices["model"]>;

/** Names of rules to leave out. */
export const omittedRulesField = z
  .array(textField(1_000).min(1, "must not be empty"), { error: needed("must be a list of rules and files") })
  .max(100);

/** A tool of the caller, who runs its calls and answers them. */
const callerToolSchema = z
  .strictObject({
    name: textField(64).regex(
      /^[a-zA-Z][a-zA-Z0-9_-]*$/,
      "must be letters, digits, _ and -, and start with a letter",
    ),
    description: textField(10_000).optional(),
    input_schema: z.record(z.string(), z.unknown(), { error: needed("must be a JSON Schema") }).optional(),
  })
  .meta({ id: "CallerTool", description: "A tool of the caller, for one prompt." });
export interface CallerTool extends Infer<typeof callerToolSchema> {}

/** Tools of a caller, for one prompt. */
export const callerToolsField = z
  .array(callerToolSchema, { error: needed("must be a list of tools: name, description, input_schema") })
  .max(128);

/** Whether the model calls tools in a prompt. */
const toolChoiceField = z.union(
  [
    z.enum(["auto", "none", "required"]),
    z.strictObject({ tool: textField(200).min(1, "must not be empty") }),
  ],
  { error: needed("must be auto, none, required, or an object with `tool`, the name of one") },
);
export type PromptToolChoice = Infer<typeof toolChoiceField>;

/** A message that was said elsewhere, as text. */
const pastMessageSchema = z
  .strictObject({ role: choiceField(["user", "assistant"]), content: textField(maxMessage) })
  .meta({ id: "PastMessage" });
export interface PastMessage extends Infer<typeof pastMessageSchema> {}

/** A message of another session of the instance. */
const forkPlaceSchema = z
  .strictObject({
    session: sessionField.optional(),
    before: textField(128).min(1, "must not be empty").meta({
      description: "A message of the user: its `operation_id`, or its `client_id`.",
    }),
  })
  .meta({ id: "ForkPlace" });
export interface ForkPlace extends Infer<typeof forkPlaceSchema> {}

/** The fields of a prompt besides its message; a dispatch has the same. */
const promptSettings = {
  ...choicesSchema.shape,
  client_id: textField(128).min(1, "must not be empty").optional().meta({
    description: "The client's own id of the message; `operation_start` and the history return it.",
  }),
  rewind_before: textField(128).min(1, "must not be empty").optional().meta({
    description:
      "The session goes on before this message of the user, which is edited or asked again: its `operation_id`, or its `client_id`. The log keeps what was said since; the history and the model no longer have it. `not_found` for a message that the session does not have.",
  }),
  fork: forkPlaceSchema.optional().meta({
    description:
      "For a new session: it begins with what another session of the instance had before one of its messages, which is edited or asked again there. Requires the action `agent.read`. `not_found` for an unknown message, `conflict` for a session that has begun.",
  }),
  role: textField(200).min(1, "must not be empty").optional(),
  thinking_level: choiceField(thinkingLevels).optional(),
  attempts: countField(maxModelAttempts).optional().meta({
    description:
      "How often kit calls the model for one turn, until the provider answers; 1 for no retry. The prompt then fails, and nothing tries it again. Default: 4, and a dispatch is tried again later.",
  }),
  omit_rules: omittedRulesField.optional().meta({
    description:
      "Rules of the project that the session is not shown from its first turn on: files, and sections such as `AGENTS.md#money`. Requires the action `agent.omit_rules`.",
  }),
  images: z
    .array(imageSchema, { error: needed("must be a list of images") })
    .max(100)
    .optional(),
  files: z
    .array(fileSchema, { error: needed("must be a list of files") })
    .max(100)
    .optional()
    .meta({ description: "Documents and recordings, such as a PDF, if the model accepts them." }),
  tools: callerToolsField.optional().meta({
    description:
      "Tools of the caller, for this prompt only. A call of one waits, as `GET …/approvals` lists it with `kind: caller`, until a decision brings its `result`. `input_schema` is the JSON Schema of an object, the arguments; without it, there are none.",
  }),
  tool_choice: toolChoiceField.optional().meta({
    description:
      "`required`, and a tool of the agent or of `tools` by its name, force the first answer of the model to call one, `required` one of `tools` if there are some; then the model decides, as with `auto`. `none`: the model calls no tool. `invalid_request` for a tool that is not there, and for a forced call of an agent whose own choice is `none`, which stays. Default: `modelSettings.toolChoice` of the agent.",
  }),
  history: z
    .array(pastMessageSchema, { error: needed("must be a list of messages") })
    .max(1_000)
    .optional()
    .meta({
      description:
        "What was said elsewhere before the message, oldest first. For a new session only: one that has begun answers `conflict`.",
    }),
};

/** The body of `POST /prompt/{session}`: the message and its settings, without the session. */
export const promptRequestSchema = z.strictObject({ message: messageField, ...promptSettings });
export interface PromptRequest extends Infer<typeof promptRequestSchema> {}
export type PromptSettings = Omit<PromptRequest, "message">;

/** The body of `POST /agents/{name}/{id}`. */
export const promptBodySchema = z.strictObject({
  ...promptRequestSchema.shape,
  session: sessionField.optional(),
});
export interface PromptBody extends Infer<typeof promptBodySchema> {}

/** The outcome of a prompt: `result` of the reply, and of the `result` event of a stream. */
const promptResultSchema = z.object({
  text: z.string(),
  /** For an agent with an `output` schema: the parsed answer. */
  result: z.unknown().optional(),
  usage: usageSchema,
  model: z.object({ id: z.string() }),
  metadata: z.record(z.string(), z.unknown()),
});
export interface PromptReply extends Infer<typeof promptResultSchema> {}

export const promptReplySchema = z.object({ result: promptResultSchema }).meta({ id: "PromptReply" });

/** When the message of a dispatch reaches the model. */
const joinField = choiceField(["next_turn"]);
export type JoinMode = Infer<typeof joinField>;

/** The result of a dispatch whose message joined a running operation. */
export interface JoinedResult {
  /** The id of that operation, which has the answer. */
  readonly joined: string;
}

/** The body of `POST /agents/{name}/{id}/dispatch`. */
export const dispatchBodySchema = z.strictObject({
  input: z
    .unknown()
    .refine((input) => input !== undefined, "is required")
    .refine((input) => input !== "" && input !== null, "must not be empty")
    .meta({
      description: "A string is the message itself; other JSON is sent to the agent as its JSON text.",
    }),
  ...promptSettings,
  session: sessionField.optional(),
  join: joinField.optional().meta({
    description:
      "`next_turn`: the message joins the operation that runs in the session; its next model call reads the message. The dispatch then ends with the result `{ joined: operation_id }`. If none runs, it is an ordinary dispatch. Only with `client_id`, `images` and `files`.",
  }),
});
export interface DispatchBody extends Infer<typeof dispatchBodySchema> {}

/** The reply of an accepted dispatch. */
export const dispatchAcceptedSchema = z
  .object({
    status: z.enum(["accepted", "failed"]),
    ...dispatchReceiptSchema.shape,
    operation_id: z.string().meta({
      description:
        "The operation that will work on the input. `GET /agents/{name}/{id}/operations/{operation_id}/events` with `Accept: text/event-stream` follows it to its end.",
    }),
  })
  .meta({
    id: "DispatchAccepted",
    description: "The input is on disk; `failed` with `error` if it was sent before and has failed.",
  });
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
      "Number of messages per page, 1 to 1,000. Pages hold all messages, also those that a compaction removed from the context.",
  }),
  before: countField(2 ** 31 - 1)
    .optional()
    .meta({ description: "`next_before` of the previous page: the messages before it. Only with `limit`." }),
});
export interface HistoryQuery extends Infer<typeof historyQuerySchema> {}

/** The query of a list over the sessions of an instance. */
export const oneSessionQuerySchema = z.strictObject({ session: oneSessionField.optional() });

/** A message of a history, without the provider's opaque data. */
const historyMessageSchema = z.object({
  role: z.enum(["user", "assistant", "tool"]),
  content: z.array(z.looseObject({ type: z.string() })),
  timestamp: z.string(),
  /** This field and the following ones are set only in pages. */
  position: z
    .int()
    .optional()
    .meta({ description: "Identifies the message within its session; increases, with gaps. Only in pages." }),
  operation_id: z.string().optional().meta({ description: "The operation of the message. Only in pages." }),
  client_id: z.string().optional().meta({ description: "The id that the client gave the message." }),
  joined_from: z.string().optional().meta({
    description: "The message of a dispatch that joined the operation: the `operation_id` of its receipt.",
  }),
  source: z.string().optional().meta({
    description: "Set on messages that kit wrote, not the user or the model: `guidelines`, `summary`, …",
  }),
  model: z.string().optional().meta({ description: "The model that answered; only on answers." }),
  usage: z.optional(usageSchema),
  finish_reason: z.enum(finishReasons).optional(),
});
export interface HistoryMessage extends Infer<typeof historyMessageSchema> {}

/** The end of an operation that failed or was aborted; the last message of a completed one is its answer. */
const historyEndSchema = z.object({
  position: z.int().optional().meta({ description: "Its place among the positions of the messages." }),
  operation_id: z.string(),
  timestamp: z.string().optional(),
  status: z.enum(["completed", "failed", "aborted"]),
  error: eventErrorSchema.optional(),
  attempts: z.int().optional().meta({ description: "Attempts of the engine; absent for one." }),
  duration_ms: z.number().optional().meta({ description: "Of the last attempt." }),
  usage: z.optional(usageSchema),
  dispatch_id: z
    .string()
    .optional()
    .meta({ description: "The dispatch that can be retried: `POST /dispatches/{dispatch_id}/retry`." }),
  message: z
    .string()
    .optional()
    .meta({ description: "The user's text, if the operation ended before the history had it." }),
});
export interface HistoryEnd extends Infer<typeof historyEndSchema> {}

export const historySchema = z
  .object({
    messages: z.array(historyMessageSchema),
    ends: z.array(historyEndSchema).optional().meta({
      description:
        "The ends of operations that failed or were aborted, after these messages and before those of the newer page. An operation with later messages went on after its end: a sender retried its dispatch. Only in pages; absent for none.",
    }),
    event_index: z.int().optional().meta({
      description:
        "Only on the newest page. Pass it as `after` to the stream: the later events cover everything that these messages do not, with the running operation from its start.",
    }),
    next_before: z
      .int()
      .optional()
      .meta({ description: "`before` of the page with older messages; absent if there are none." }),
  })
  .meta({ id: "History", description: "Oldest first." });
export interface HistoryPage extends Infer<typeof historySchema> {}

export const abortBodySchema = z.strictObject({
  session: oneSessionField.optional(),
  operation_id: textField(128).optional().meta({
    description:
      "Only this operation, also if it is still queued; one that has ended stays as it is. Default: all that run.",
  }),
});

export const abortedSchema = z
  .object({ aborted: z.boolean().meta({ description: "True if something was running or queued." }) })
  .meta({ id: "Aborted" });

export const deletedSchema = z.object({ deleted: z.literal(true) }).meta({ id: "Deleted" });
