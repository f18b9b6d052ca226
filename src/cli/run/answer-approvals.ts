import { KitError } from "../../base/kit-error.ts";
import type { KitClient } from "../../client/kit-client.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { CommandContext } from "../command.ts";
import { canAsk } from "../print/output.ts";
import { createFileReader } from "../print/print-call.ts";
import type { EventPrinter } from "../print/print-events.ts";
import { safeLine } from "../text/safe-text.ts";
import { createTerminalApprovals } from "./terminal-approvals.ts";

type ApprovalRequested = Extract<KitEvent, { type: "approval_request" }>;

/** Says what waits, and the command that approves the call, or answers its question, on a server. */
export function waitingLine({ approval_id, tool, kind, message }: ApprovalRequested): string {
  return kind === "question"
    ? `${tool} asks: ${message} kit approvals answer ${approval_id} <answer>`
    : `${tool} waits for approval: kit approvals approve ${approval_id}`;
}

/**
 * Handles approval requests among a server's events: asks at the terminal or, without a terminal, prints the command
 * that decides.
 */
export function createApprovalAnswers({
  client,
  context: { input, output, json },
  printer,
}: {
  readonly client: KitClient;
  readonly context: CommandContext;
  readonly printer: EventPrinter;
}): { readonly onEvent: (event: KitEvent) => void; close(): void } {
  const isAsked = canAsk({ input, output }) && !json;
  const terminal = createTerminalApprovals({
    input,
    output,
    mask: (text) => text,
    readFile: createFileReader((path) => client.files.lines({ path })),
  });
  const questions = new Map<string, AbortController>();

  async function ask(event: ApprovalRequested, question: AbortController): Promise<void> {
    const { approval_id, agent = "", instance_id, session = "default" } = event;
    // The event does not say which file the call changes.
    const { approvals } = await client.approvals.list({ agent, instance_id, limit: 1_000 });
    const changes = approvals.find((one) => one.approval_id === approval_id)?.changes;
    const request = { ...event, agent, session, requested_at: event.timestamp, changes };
    for (;;) {
      const { approved, reason, result } = await terminal.request(request, question.signal);
      const decision = { id: instance_id, approval_id, approved, reason, result };
      try {
        return await client.agents.approve(agent, decision);
      } catch (error) {
        // The schema of the question refuses the answer: the person corrects it.
        if (!(error instanceof KitError) || error.code !== "invalid_request") throw error;
        const issues = (error.meta?.issues ?? []) as readonly { readonly message: string }[];
        output.note(safeLine([error.message, ...issues.map(({ message }) => message)].join(" ")));
      }
    }
  }

  function receive(event: ApprovalRequested): void {
    printer.end();
    if (!isAsked) {
      output.note(output.noteStyle("yellow", safeLine(waitingLine(event))));
      return;
    }
    const question = new AbortController();
    questions.set(event.approval_id, question);
    ask(event, question).catch((error: unknown) => {
      if (question.signal.aborted) return;
      output.note(`${output.noteStyle("red", "error:")} ${safeLine(String(error))}`);
    });
  }

  return {
    onEvent(event) {
      if (event.type === "approval_request") receive(event);
      // Another person has decided.
      else if (event.type === "approval") questions.get(event.approval_id)?.abort();
    },
    close() {
      for (const question of questions.values()) question.abort();
    },
  };
}
