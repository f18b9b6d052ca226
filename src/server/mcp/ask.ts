import { type InputRequest, inputRequired, inputResponse } from "@modelcontextprotocol/server";
import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import { decideCall } from "../routes/approvals.ts";
import type { McpContext, McpWork } from "./mcp-work.ts";

/** The arguments of a call in a form, in characters; forms have no room for more. */
const maxArguments = 4_000;

/** The questions about waiting calls by their ids, which never repeat. A form is flat, so the arguments are in its text. */
export function toQuestions(calls: readonly ApprovalRequest[]): Record<string, InputRequest> {
  return Object.fromEntries(
    calls.map(({ approval_id, agent, tool, args }) => {
      const text = JSON.stringify(args) ?? "";
      const start = text.length > maxArguments ? `${text.slice(0, maxArguments)}…` : text;
      const rest = text.length > maxArguments ? " The arguments are cut: kit's inbox has all of them." : "";
      const question = inputRequired.elicit({
        message: `The agent ${agent} calls ${tool} with ${start}.${rest}`,
        requestedSchema: {
          type: "object",
          properties: {
            decision: { type: "string", enum: ["approve", "deny"], title: "Decision" },
            reason: { type: "string", title: "Reason", description: "If denied; the agent reads it." },
          },
          required: ["decision"],
        },
      });
      return [approval_id, question];
    }),
  );
}

/**
 * Decides about the waiting calls that a client has answered. Only a clear yes approves; a form that was closed without an answer
 * decides nothing. Returns whether there was such a form.
 */
export async function decideAnswered(
  { service }: McpContext,
  work: McpWork,
  { principal, answers }: { readonly principal: Principal | undefined; readonly answers: Answers },
): Promise<boolean> {
  let isClosed = false;
  for (const { approval_id, agent, instance_id } of await work.waiting()) {
    const answer = inputResponse(answers, approval_id);
    if (answer.kind !== "elicit") continue;
    if (answer.action === "cancel") isClosed = true;
    else {
      const decision = { ...toDecision(answer), by: principal?.id };
      await decideCall(service, { agent, instance_id, approval_id }, decision).catch(ignoreDecided);
    }
  }
  return isClosed;
}

/** The answers of a client, by the ids of the questions. */
export type Answers = Parameters<typeof inputResponse>[0];

function toDecision({
  action,
  content,
}: {
  readonly action: string;
  readonly content?: unknown;
}): ApprovalDecision {
  const { decision, reason }: { readonly decision?: unknown; readonly reason?: unknown } = Object(content);
  if (action === "accept" && decision === "approve") return { approved: true };
  const given = typeof reason === "string" && reason !== "" ? reason.slice(0, 10_000) : undefined;
  return { approved: false, reason: given ?? "The person who was asked declined." };
}

/** Another person has decided first. */
function ignoreDecided(error: unknown): void {
  if (!(error instanceof KitError) || error.code !== "not_found") throw error;
}
