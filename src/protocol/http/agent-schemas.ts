import { z } from "zod";
import { backendNames } from "../backend-name.ts";
import type { DispatchReceipt } from "../dispatch.ts";
import type { Message } from "../message.ts";
import type {
  PromptBody,
  PromptChoices,
  PromptFile,
  PromptImage,
  PromptReply,
  PromptRequest,
} from "../prompt.ts";
import { thinkingLevels } from "../thinking-level.ts";
import {
  choiceField,
  eventPositionField,
  type FieldSchemas,
  nameField,
  needed,
  textField,
} from "./fields.ts";
import { usageSchema } from "./usage-schema.ts";

/** An agent as `GET /agents` lists it. */
export interface AgentEntry {
  readonly name: string;
  /** The file it stands in: POSIX, relative to the project root. */
  readonly path: string;
  /** Whether its file says that requests reach it; others do where `server.expose` is `all`. */
  readonly triggers: { readonly webhook: boolean };
  /** Served because this is `kit dev`; `kit start` answers 404 `agent_not_webhook`. */
  readonly dev_only?: true;
}

export interface AgentList {
  readonly agents: readonly AgentEntry[];
}

export const agentListSchema: z.ZodType<AgentList> = z
  .object({
    agents: z.array(
      z.object({
        name: z.string(),
        path: z.string().meta({ description: "Its file: POSIX, relative to the project root." }),
        triggers: z
          .object({ webhook: z.boolean() })
          .meta({ description: 'Without `webhook` it is not served, unless `server.expose` is "all".' }),
        dev_only: z
          .literal(true)
          .exactOptional()
          .meta({ description: "Served because this is `kit dev`: `kit start` does not." }),
      }),
    ),
  })
  .meta({ id: "AgentList" });

/** Longer texts than this do not fit into a body anyway. */
const maxMessage = 1_073_741_824;

const messageField = textField(maxMessage)
  .min(1, "must not be empty")
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode");

export const sessionField: z.ZodType<string> = nameField.meta({
  description: "Which conversation of the instance; default `default`.",
});

const oneSessionField: z.ZodType<string> = nameField.meta({
  description: "Of this session alone; default: of all sessions of the instance.",
});

// What no model takes for a picture would stay in the history, and fail every prompt after it.
const imageTypeField = textField(200).regex(
  /^image\/[\w*.+-]+$/,
  "must be a type of picture, such as image/png",
);

const imageSchema: z.ZodType<PromptImage> = z.union(
  [
    z.strictObject({
      data: z.base64("must be base64").min(1, "must not be empty"),
      media_type: imageTypeField,
    }),
    z.strictObject({
      url: textField(8_192).regex(/^https:\/\//, "must start with https://"),
      media_type: imageTypeField.exactOptional(),
    }),
  ],
  { error: needed("must be a picture: data and media_type, or url") },
);

const namedFile = {
  media_type: textField(200).regex(
    /^[a-z]+\/[\w.+-]{1,100}$/,
    "must be a media type, such as application/pdf or audio/wav",
  ),
  filename: textField(255)
    .regex(/^[^\p{Cc}/\\]{1,255}$/u, "must be a name without folders and control characters")
    .exactOptional(),
};

const fileSchema: z.ZodType<PromptFile> = z.union(
  [
    z.strictObject({ data: z.base64("must be base64").min(1, "must not be empty"), ...namedFile }),
    z.strictObject({ url: textField(8_192).regex(/^https:\/\//, "must start with https://"), ...namedFile }),
  ],
  { error: needed("must be a file: data or url, and media_type") },
);

const modelField = textField(500).min(1, "must not be empty");

const choiceFields: FieldSchemas<PromptChoices> = {
  model: z
    .union([modelField, z.array(modelField).min(1).max(20)], {
      error: needed("must be provider/model, or a list of up to 20 of them"),
    })
    .exactOptional()
    .meta({
      description: "`provider/model`, or a list where the next one answers when one fails; this time only.",
    }),
  backend: choiceField(backendNames).exactOptional().meta({
    description: "What decides the turns, this time only; default: the agent's backend.",
  }),
};

export const promptFields: FieldSchemas<PromptRequest> = {
  message: messageField,
  ...choiceFields,
  role: textField(200).min(1, "must not be empty").exactOptional(),
  thinking_level: choiceField(thinkingLevels).exactOptional(),
  images: z
    .array(imageSchema, { error: needed("must be a list of pictures") })
    .max(100)
    .exactOptional(),
  files: z
    .array(fileSchema, { error: needed("must be a list of files") })
    .max(100)
    .exactOptional()
    .meta({ description: "Documents and recordings, such as a PDF, where the model takes them." }),
};

/** The body of `POST /prompt/{session}`. */
export const promptRequestSchema: z.ZodType<PromptRequest> = z.strictObject(promptFields);

export const promptBodySchema: z.ZodType<PromptBody> = z.strictObject({
  ...promptFields,
  session: sessionField.exactOptional(),
});

export const promptReplySchema: z.ZodType<{ readonly result: PromptReply }> = z
  .object({
    result: z.object({
      text: z.string(),
      usage: usageSchema,
      model: z.object({ id: z.string() }),
      metadata: z.record(z.string(), z.unknown()),
    }),
  })
  .meta({ id: "PromptReply" });

/** The body of `POST /agents/{name}/{id}/dispatch`. */
export interface DispatchBody extends PromptChoices {
  readonly input: unknown;
  readonly session?: string;
}

export const dispatchBodySchema: z.ZodType<DispatchBody> = z.strictObject({
  input: z
    .unknown()
    .refine((input) => input !== undefined, "is required")
    .refine((input) => input !== "" && input !== null, "must not be empty")
    .meta({ description: "A text is the message; other JSON is given to the agent as its text." }),
  ...choiceFields,
  session: sessionField.exactOptional(),
});

/** The reply of an accepted dispatch. */
export interface DispatchAccepted extends DispatchReceipt {
  readonly status: "accepted";
}

export const dispatchAcceptedSchema: z.ZodType<DispatchAccepted> = z
  .object({ status: z.literal("accepted"), dispatch_id: z.string(), accepted_at: z.string() })
  .meta({ id: "DispatchAccepted", description: "The input is on disk." });

/** The query of a stream of events. */
export interface InstanceEventsQuery {
  readonly session?: string;
  readonly after?: number;
}

export const instanceEventsQuerySchema: z.ZodType<InstanceEventsQuery> = z.strictObject({
  session: oneSessionField.exactOptional(),
  after: eventPositionField.exactOptional(),
});

export interface SessionQuery {
  readonly session?: string;
}

export const sessionQuerySchema: z.ZodType<SessionQuery> = z.strictObject({
  session: sessionField.exactOptional(),
});

/** The query of a list over the sessions of an instance. */
export const oneSessionQuerySchema: z.ZodType<SessionQuery> = z.strictObject({
  session: oneSessionField.exactOptional(),
});

/** A message of a history, without what only its provider understands. */
export type HistoryMessage = Pick<Message, "role" | "timestamp"> & {
  readonly content: readonly Readonly<Record<string, unknown>>[];
};

export interface History {
  readonly messages: readonly HistoryMessage[];
}

export const historySchema: z.ZodType<History> = z
  .object({
    messages: z.array(
      z.object({
        role: z.enum(["user", "assistant", "tool"]),
        content: z.array(z.looseObject({ type: z.string() })),
        timestamp: z.string(),
      }),
    ),
  })
  .meta({ id: "History" });

export const abortBodySchema: z.ZodType<SessionQuery> = z.strictObject({
  session: oneSessionField.exactOptional(),
});

export const abortedSchema: z.ZodType<{ readonly aborted: boolean }> = z
  .object({ aborted: z.boolean().meta({ description: "Whether anything was running." }) })
  .meta({ id: "Aborted" });

export const deletedSchema: z.ZodType<{ readonly deleted: true }> = z
  .object({ deleted: z.literal(true) })
  .meta({ id: "Deleted" });
