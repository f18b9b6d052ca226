import { isRecord } from "../../base/record.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";

/**
 * An event besides the progress of the processes. `rewind` stops the operation and sends another message in the place of its own.
 * `freeze` stops the process that works; without `wake` it has died. `lose` ends every lease of a Postgres engine.
 */
export type CallEvent = "approve" | "deny" | "cancel" | "rewind" | "expire" | "freeze" | "wake" | "lose";

/** An event, after a number of steps of the process that works. */
export interface Scheduled {
  readonly event: CallEvent;
  readonly steps: number;
}

/**
 * The agent whose call waits: for an approval, also in a task of its own or with other arguments of the approver, for the answer to a
 * question that the running call asks, or for the result of its caller.
 */
export type WaitingAgent = "payer" | "edited" | "delegator" | "asker" | "called";

const payer = `globalThis.kitPaid ??= [];
export default {
  kind: "kit.agent",
  describe: async ({ id }) => ({
    instructions: "Pay.",
    tools: [{
      name: "pay",
      description: "Pays.",
      input: { type: "object", properties: { euros: { type: "integer" } } },
      needsApproval: true,
      execute: async ({ euros }) => {
        globalThis.kitPaid.push(id + ":" + euros);
        return "Paid.";
      },
    }],
  }),
};
`;

/** The tool of the caller: its result is the payment. */
export const pay = {
  name: "pay",
  input_schema: { type: "object", properties: { euros: { type: "integer" } } },
};

export const modelFiles: Readonly<Record<string, string>> = {
  "src/agents/asker.ts": `globalThis.kitPaid ??= [];
export default {
  kind: "kit.agent",
  describe: async ({ id }) => ({
    instructions: "Pay.",
    tools: [{
      name: "pay",
      description: "Asks, and pays.",
      input: { type: "object", properties: { euros: { type: "integer" } } },
      execute: async (_, { ask }) => {
        const answer = await ask({ message: "How much?", schema: { type: "integer" } });
        if (answer.action !== "accept") return "Not paid.";
        globalThis.kitPaid.push(id + ":" + answer.value);
        return "Paid.";
      },
    }],
  }),
};
`,
  "src/agents/payer.ts": payer,
  "src/agents/delegator.ts": payer,
  "src/agents/edited.ts": payer.replace(
    "needsApproval: true",
    "needsApproval: true, editableArguments: true",
  ),
  "src/agents/called.ts": `export default { kind: "kit.agent", describe: async () => ({ instructions: "Pay." }) };\n`,
};

/** The answer to a person. */
export interface Answer {
  readonly event: "approve" | "deny";
  readonly isAccepted: boolean;
  readonly first?: ApprovalDecision | undefined;
  /** Why it was not accepted. */
  readonly message?: string;
}

/** The outcome of a schedule. */
export interface CallStory {
  readonly schedule: readonly Scheduled[];
  readonly answers: readonly Answer[];
  readonly status: string | undefined;
  readonly paid: readonly string[];
  /** Whether the model was told that the outcome is unknown, because a process stopped after the log had the decision. */
  readonly isUnknown: boolean;
  readonly isCancelled: boolean;
  readonly isExpired: boolean;
  /** The answers to the messages in the place of the first one. */
  readonly rewound: readonly unknown[];
  /** Whether the approver changes the amount. */
  readonly isEdited: boolean;
  readonly waiting: number;
}

/** The promises that a story breaks. */
export function broken({
  schedule,
  answers,
  status,
  paid,
  isUnknown,
  isCancelled,
  isExpired,
  isEdited,
  rewound,
  waiting,
}: CallStory): readonly string[] {
  const faults: string[] = [];
  const accepted = answers.filter(({ isAccepted }) => isAccepted);
  const [first] = accepted;
  if (accepted.length > 1) faults.push("two decisions were accepted");
  for (const { isAccepted, first: known } of answers) {
    const isTrue =
      known === undefined ? isCancelled : known.by === first?.event && (first !== undefined || isExpired);
    if (!isAccepted && !isTrue) faults.push("a person was told another first decision");
  }
  if (paid.length > 1) faults.push("it was paid twice");
  if (first?.event !== "approve" && paid.length > 0) faults.push("it was paid without an approval");
  if (paid.some((one) => !one.endsWith(isEdited ? ":7" : ":5")))
    faults.push("it was paid with other arguments");
  if (first?.event === "approve" && !isCancelled && !isUnknown && paid.length === 0)
    faults.push("an approved payment was not made");
  if (isUnknown && !schedule.some(({ event }) => event === "freeze" || event === "lose"))
    faults.push("its outcome is unknown");
  if (status !== "completed" && !(isCancelled && status === "cancelled"))
    faults.push(`the dispatch is ${status}`);
  for (const answer of rewound)
    if (!(isRecord(answer) && answer.text === "Instead."))
      faults.push("the message in its place was not answered");
  if (waiting > 0) faults.push("a call of ended work is listed");
  return faults;
}

/** The steps after which a call is listed: the log has its request, and the engine its row. */
const asked = 2;

/** All orders of the events with up to `most` steps of the processes before and between them. */
export function schedules(events: readonly CallEvent[], most: number): readonly (readonly Scheduled[])[] {
  return orders(events)
    .flatMap((order) =>
      gaps(order.length, most).map((steps) => order.map((event, at) => ({ event, steps: steps[at] ?? 0 }))),
    )
    .filter(isPossible);
}

function isPossible(schedule: readonly Scheduled[]): boolean {
  let total = 0;
  let isFrozen = false;
  for (const { event, steps } of schedule) {
    total += steps;
    // Before, no person knows of the call.
    if ((event === "approve" || event === "deny") && total < asked) return false;
    if (event === "wake" && !isFrozen) return false;
    isFrozen ||= event === "freeze";
  }
  return true;
}

function orders(events: readonly CallEvent[]): CallEvent[][] {
  if (events.length === 0) return [[]];
  return events.flatMap((event, at) => orders(events.toSpliced(at, 1)).map((rest) => [event, ...rest]));
}

function gaps(count: number, most: number): number[][] {
  if (count === 0) return [[]];
  return Array.from({ length: most + 1 }, (_, steps) =>
    gaps(count - 1, most - steps).map((rest) => [steps, ...rest]),
  ).flat();
}
