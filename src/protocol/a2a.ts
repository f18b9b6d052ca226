import { z } from "zod";
import { choiceField, countField, type Infer, textField, timeField } from "./fields.ts";

// Protobuf's JSON has `null` and empty texts for fields that are not set.
const optionalText = (max: number) => textField(max).nullish();
const idField = textField(200).min(1, "must not be empty");

const partSchema = z
  .looseObject({
    text: z.string().nullish(),
    raw: z.string().nullish(),
    url: z.string().nullish(),
    data: z.unknown().optional(),
    mediaType: optionalText(200),
    filename: optionalText(255),
  })
  .refine(
    ({ text, raw, url, data }) =>
      [text ?? undefined, raw ?? undefined, url ?? undefined, data].filter(isSet).length === 1,
    "must have one of text, data, raw and url",
  );
export interface A2aPart extends Infer<typeof partSchema> {}

const messageSchema = z.looseObject({
  messageId: idField,
  role: z.literal("ROLE_USER", { error: 'must be "ROLE_USER"' }),
  parts: z.array(partSchema).min(1, "must not be empty").max(1_000),
  contextId: optionalText(128),
  taskId: optionalText(200),
});
/** A message of an A2A client. */
export interface A2aMessage extends Infer<typeof messageSchema> {}

const historyLength = z.int().min(0, "must not be negative").nullish();

export const a2aStates = [
  "TASK_STATE_UNSPECIFIED",
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_REJECTED",
  "TASK_STATE_AUTH_REQUIRED",
] as const;
export type A2aState = (typeof a2aStates)[number];

/** The params of A2A's methods, as far as kit reads them. */
export const a2aParams = {
  send: z.looseObject({
    message: messageSchema,
    configuration: z
      .looseObject({
        historyLength,
        returnImmediately: z.boolean().nullish(),
        taskPushNotificationConfig: z.unknown().optional(),
      })
      .nullish(),
  }),
  get: z.looseObject({ id: idField, historyLength }),
  list: z.looseObject({
    contextId: optionalText(128),
    status: choiceField(a2aStates).nullish(),
    pageSize: countField(100).nullish(),
    pageToken: optionalText(1_000),
    historyLength,
    statusTimestampAfter: timeField.nullish(),
    includeArtifacts: z.boolean().nullish(),
  }),
  id: z.looseObject({ id: idField }),
};

export const a2aBodySchema = z
  .looseObject({
    jsonrpc: z.literal("2.0", { error: 'must be "2.0"' }),
    // Each frame of a stream repeats it.
    id: z
      .union([textField(200), z.number(), z.null()], {
        error: "must be a text of at most 200 characters, a number or null",
      })
      .optional(),
    method: textField(200),
    params: z.record(z.string(), z.unknown(), { error: "must be an object" }).nullish(),
  })
  .meta({ id: "A2aRequest", description: "A request of JSON-RPC 2.0 with a method of A2A 1.0." });

export const a2aCardSchema = z
  .looseObject({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    supportedInterfaces: z.array(
      z.object({ url: z.string(), protocolBinding: z.string(), protocolVersion: z.string() }),
    ),
    skills: z.array(z.looseObject({ id: z.string(), name: z.string(), description: z.string() })),
  })
  .meta({ id: "AgentCard", description: "The card of an agent, as A2A 1.0 has it." });

/** A part that kit sends, in a message or an artifact. */
export type A2aSentPart =
  | { readonly text: string; readonly mediaType: "text/plain" }
  | { readonly data: unknown; readonly mediaType: "application/json" };

export interface A2aSentMessage {
  readonly messageId: string;
  readonly role: "ROLE_USER" | "ROLE_AGENT";
  readonly parts: readonly (A2aSentPart | A2aPart)[];
  readonly taskId: string;
  readonly contextId: string;
}

export interface A2aStatus {
  readonly state: A2aState;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly message?: A2aSentMessage;
}

export interface A2aArtifact {
  readonly artifactId: string;
  readonly name: string;
  readonly parts: readonly A2aSentPart[];
}

export interface A2aTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: A2aStatus;
  readonly artifacts?: readonly A2aArtifact[];
  readonly history?: readonly A2aSentMessage[];
}

interface OfTask {
  readonly taskId: string;
  readonly contextId: string;
}

/** An item of a stream. */
export type A2aUpdate =
  | { readonly task: A2aTask }
  | { readonly statusUpdate: OfTask & { readonly status: A2aStatus } }
  | {
      readonly artifactUpdate: OfTask & {
        readonly artifact: A2aArtifact;
        readonly append: boolean;
        readonly lastChunk: boolean;
      };
    };

function isSet(value: unknown): boolean {
  return value !== undefined;
}
