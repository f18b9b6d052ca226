import { toSentence } from "../../base/error-text.ts";
import { canonical } from "../../base/json-text.ts";
import { checkAgainst, isStandardSchema } from "../../base/standard-schema.ts";
import { faultOfSchema } from "../../json-schema/schema-fault.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { Answer, Question } from "../define/question.ts";
import type { ValidateJson } from "../define/tool.ts";
import { createToolContext } from "../define/tool-context.ts";
import { taskIdOf } from "../events.ts";
import { jsonSchemaOf } from "../output/typed-output.ts";
import type { AskedQuestion, GatedCall, ToolGate } from "./call-gate.ts";
import { questionKey } from "./call-record.ts";

const maxMessage = 10_000;
const maxSchema = 65_536;

/** The call of a tool that asks. */
export interface AskingCall extends Pick<GatedCall, "call" | "context"> {
  readonly gate: Pick<ToolGate, "record" | "waitForDecision">;
  /** Whether the tool can be called again after the answer: then its operation can leave memory. */
  readonly isIdempotent: boolean;
  readonly validateJson: ValidateJson;
  /** How often the call has asked each question: the same question again is another one. */
  readonly asked: Map<string, number>;
}

/**
 * Asks a person a question for a running call, and asks again if the schema refuses the answer. Throws `TypeError` for a question
 * that no person could be asked.
 */
export async function askPerson<Value>(
  asking: AskingCall,
  { message, schema, timeoutMs, signal }: Question<Value>,
): Promise<Answer<Value>> {
  const form = toForm(asking.call.tool, { message, schema });
  let refused = "";
  for (;;) {
    const text = refused === "" ? message : `${message}\n\nAn earlier answer was refused: ${refused}.`;
    const decision = await decisionAbout(asking, { message: text, schema: form, timeoutMs, signal });
    const { approved, result, reason, by, unanswered } = decision;
    if (unanswered === true) return { action: "cancel", reason };
    if (!approved) return { action: "decline", reason, by };
    const check = await checkAgainst(schema, result, asking.validateJson);
    if (check.issues === undefined) return { action: "accept", value: check.value as Value, by };
    refused = check.issues.slice(0, 5).join("; ").slice(0, 1_000);
  }
}

/** The decision of the log, if the question was decided before the process that asked it ended, or the next one. */
async function decisionAbout(
  { gate, call, context, isIdempotent, asked }: AskingCall,
  { signal, ...question }: Omit<AskedQuestion, "isIdempotent"> & Pick<Question, "signal">,
): Promise<ApprovalDecision> {
  const { message, schema } = question;
  const name = await taskIdOf(canonical({ message, schema }));
  const count = (asked.get(name) ?? 0) + 1;
  asked.set(name, count);
  const key = questionKey(context.idempotencyKey, `${name}:${count}`);
  const record = gate.record(key);
  if (record.decision !== undefined) return record.decision;
  const { toolCallId, operationId, turnId = "" } = context;
  const end = AbortSignal.any([context.signal, ...(signal === undefined ? [] : [signal])]);
  const gated: GatedCall = {
    call,
    turnId,
    input: call.args,
    modelArgs: call.args,
    context: createToolContext({ toolCallId, turnId, operationId, idempotencyKey: key, signal: end }),
    question: { ...question, isIdempotent },
  };
  return await gate.waitForDecision(gated, record);
}

function toForm(tool: string, { message, schema }: Question): Readonly<Record<string, unknown>> {
  const fault = (text: string): never => {
    throw new TypeError(toSentence(`A question of the tool "${tool}": ${text}`));
  };
  if (typeof message !== "string" || message.trim() === "") fault("`message` must be a text");
  if (message.length > maxMessage) fault("`message` has more than 10,000 characters");
  const why = faultOfSchema(schema);
  if (why !== undefined) fault(`\`schema\` ${why}`);
  const form = isStandardSchema(schema) ? (jsonSchemaOf(schema) ?? {}) : schema;
  if (JSON.stringify(form).length > maxSchema) fault("`schema` has more than 65,536 characters of JSON");
  return form;
}
