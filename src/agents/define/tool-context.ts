import { KitError } from "../../base/kit-error.ts";
import { noApplicationCalls } from "./create-agent.ts";
import type { ToolContext } from "./tool.ts";

/**
 * The context of a call that no model makes, such as a tool's own test: what is given, else a call of the agent "test"
 * without an application, whose `ask`, `dispatch` and `startRun` are refused with `unavailable`.
 *
 * @example
 * ```ts
 * import { defineTool } from "kit";
 * import { createToolContext } from "kit/testing";
 *
 * const where = defineTool({
 *   name: "where",
 *   description: "Says where the call is made.",
 *   input: { type: "object" },
 *   execute: (_, { instance }) => instance,
 * });
 * console.log(await where.execute({}, createToolContext({ instance: "pr-7" })));
 * ```
 */
export function createToolContext(fields: Partial<ToolContext> = {}): ToolContext {
  const { toolCallId = "call_1", operationId = "op_1" } = fields;
  const idempotencyKey = fields.idempotencyKey ?? `${operationId}:${toolCallId}`;
  return {
    toolCallId,
    operationId,
    idempotencyKey,
    agent: "test",
    instance: "1",
    session: "default",
    principal: undefined,
    runId: undefined,
    env: {},
    signal: new AbortController().signal,
    progress: () => undefined,
    ask: async () => {
      throw new KitError({ code: "unavailable", message: "This call has no person whom it could ask." });
    },
    ...noApplicationCalls,
    ...fields,
  };
}
