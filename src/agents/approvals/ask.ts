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
  readonly gate: Pick<ToolGate, "record" | "waitForDecision" | "openQuestions" | "withdraw">;
  /** Whether the tool can be called again after the answer: then its operation can leave memory. */
  readonly isIdempotent: boolean;
  readonly validateJson: ValidateJson;
  /** The keys of the questions that this attempt has asked or withdrawn: the same question again is another one. */
  readonly asked: Set<string>;
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
  const { toolCallId, operationId, turnId = "", idempotencyKey } = context;
  const name = await taskIdOf(canonical({ message, schema }));
  const keyAt = (count: number): string => questionKey(idempotencyKey, `${name}:${count}`);
  let count = 1;
  while (asked.has(keyAt(count))) count += 1;
  const key = keyAt(count);
  asked.add(key);
  const record = gate.record(key);
  if (record.decision !== undefined) return record.decision;
  const end = AbortSignal.any([context.signal, ...(signal === undefined ? [] : [signal])]);
  const toGated = (of: string): GatedCall => ({
    call,
    turnId,
    input: call.args,
    modelArgs: call.args,
    context: createToolContext({ toolCallId, turnId, operationId, idempotencyKey: of, signal: end }),
    question: { ...question, isIdempotent },
  });
  if (record.request === undefined)
    for (const open of gate.openQuestions(idempotencyKey)) {
      if (asked.has(open)) continue;
      asked.add(open);
      // Questions of one call wait one after the other: an earlier attempt asked this one in place of the new one.
      await gate.withdraw(toGated(open), gate.record(open));
    }
  return await gate.waitForDecision(toGated(key), record);
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
