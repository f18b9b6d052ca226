import { Role, type Task, TaskState } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client";

/** The SDK's client of an agent. */
export async function connectA2a(url: string, name: string, key?: string): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
    return fetch(input, { ...init, headers });
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return await factory.createFromUrl(url, `/a2a/${name}/.well-known/agent-card.json`);
}

let count = 0;

type Sent = Parameters<Client["sendMessage"]>[0];

/** A message with a text, or data. */
export function messageOf(content: string | object, more: Partial<NonNullable<Sent["message"]>> = {}): Sent {
  const part =
    typeof content === "string"
      ? { content: { $case: "text" as const, value: content }, mediaType: "text/plain" }
      : { content: { $case: "data" as const, value: content }, mediaType: "application/json" };
  return {
    tenant: "",
    configuration: undefined,
    metadata: undefined,
    message: {
      messageId: `message-${++count}-${Math.random()}`,
      role: Role.ROLE_USER,
      contextId: "",
      taskId: "",
      parts: [{ ...part, filename: "", metadata: undefined }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...more,
    },
  };
}

/** The same, for a client that does not wait. */
export function messageOnly(content: string, more: Partial<NonNullable<Sent["message"]>> = {}): Sent {
  return {
    ...messageOf(content, more),
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: true,
    },
  };
}

/** Sends a message and returns its task. */
export async function send(client: Client, sent: Sent): Promise<Task> {
  const reply = await client.sendMessage(sent);
  if (!("status" in reply)) throw new Error("The agent answered without a task.");
  return reply;
}

/** The data of the calls that a task waits for. */
export function callsOf({ status }: Pick<Task, "status">): readonly { readonly approval_id: string }[] {
  const parts = status?.message?.parts ?? [];
  return parts.flatMap(({ content }) => (content?.$case === "data" ? [content.value] : []));
}

/** A message that answers the first call of a task. */
export function answerTo(task: Task, answer: object): Sent {
  return messageOf({ approval_id: callsOf(task)[0]?.approval_id, ...answer }, { taskId: task.id });
}

/** The name of a task's state, and what its agent has answered. */
export function seen({ status, artifacts }: Task): readonly [string, string] {
  const state = TaskState[status?.state ?? 0] ?? "";
  const texts = artifacts.flatMap(({ parts }) =>
    parts.map(({ content }) => (content?.$case === "text" ? content.value : JSON.stringify(content?.value))),
  );
  return [state.replace("TASK_STATE_", ""), texts.join("")];
}

export interface SeenStream {
  readonly kinds: readonly string[];
  readonly text: string;
  readonly last: string;
}

/** Reads a stream to its end, as a client that follows `append` does. */
export async function readStream(
  stream: ReturnType<Client["sendMessageStream"]>,
  onItem: (kind: string, text: string) => void = () => undefined,
): Promise<SeenStream> {
  const kinds: string[] = [];
  let text = "";
  let last = "";
  for await (const { payload } of stream) {
    if (payload === undefined) continue;
    const { $case, value } = payload;
    if ($case === "task") [last, text] = seen(value);
    if ($case === "statusUpdate")
      last = (TaskState[value.status?.state ?? 0] ?? "").replace("TASK_STATE_", "");
    if ($case === "artifactUpdate") {
      const said = value.artifact?.parts
        .map(({ content }) => (content?.$case === "text" ? content.value : ""))
        .join("");
      text = value.append ? text + said : (said ?? "");
    }
    kinds.push($case === "statusUpdate" ? last : $case);
    onItem($case, text);
  }
  return { kinds, text, last };
}

/** The params of a request for a task. */
export function idOf(id: string) {
  return { tenant: "", id };
}

/** The params of a list of one context's tasks; "": of all. */
export function listOf(contextId: string, more: object = {}) {
  return {
    ...{ tenant: "", contextId, status: 0, pageSize: 50, pageToken: "", historyLength: undefined },
    ...{ statusTimestampAfter: undefined, includeArtifacts: undefined, ...more },
  };
}

/** A message of one part, as the wire has it. */
export function part(one: object) {
  return { messageId: `part-${++count}-${Math.random()}`, role: "ROLE_USER", parts: [one] };
}
