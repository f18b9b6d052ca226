import { type InputRequest, inputRequired, inputResponse } from "@modelcontextprotocol/server";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { Principal } from "../../protocol/access.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import { decideCall } from "../routes/approvals.ts";
import type { McpContext, McpWork } from "./mcp-work.ts";

/** The arguments of a call in a form, in characters; forms have no room for more. */
const maxArguments = 4_000;

/** The questions about waiting calls by their ids, which never repeat. A form is flat, so the arguments are in its text. */
export function toQuestions(calls: readonly ApprovalRequest[]): Record<string, InputRequest> {
  return Object.fromEntries(
    calls.flatMap(({ approval_id, agent, tool, args, kind, message, schema }) => {
      if (kind === "question") {
        const requestedSchema = toFlatForm(schema);
        const text = `${tool} of the agent ${agent} asks: ${message}`;
        return requestedSchema === undefined
          ? []
          : [[approval_id, inputRequired.elicit({ message: text, requestedSchema })]];
      }
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
      return [[approval_id, question]];
    }),
  );
}

type Form = Parameters<typeof inputRequired.elicit>[0]["requestedSchema"];

const plainTypes = ["string", "number", "integer", "boolean"];

/** The form of a question, if clients can show it: an object whose fields are no objects. Others are answered in the inbox. */
function toFlatForm(schema: ApprovalRequest["schema"]): Form | undefined {
  const { type, properties, required = [] } = schema ?? {};
  if (type !== "object" || !isRecord(properties)) return undefined;
  const isFlat = Object.values(properties).every((field) => plainTypes.includes(String(Object(field).type)));
  return isFlat ? ({ type, properties, required } as Form) : undefined;
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
  for (const { approval_id, agent, instance_id, kind } of await work.waiting()) {
    const answer = inputResponse(answers, approval_id);
    if (answer.kind !== "elicit") continue;
    if (answer.action === "cancel") isClosed = true;
    else {
      const decided =
        kind === "question" && answer.action === "accept"
          ? { approved: true, result: answer.content ?? {} }
          : toDecision(answer);
      const decision = { ...decided, by: principal?.id };
      await decideCall(service, { agent, instance_id, approval_id }, decision).catch(ignoreUndecided);
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

/** Another person has decided first, or the answer has another form than its question: then the client is asked again. */
function ignoreUndecided(error: unknown): void {
  if (!(error instanceof KitError) || !["not_found", "invalid_request"].includes(error.code)) throw error;
}
