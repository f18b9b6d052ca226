import { createId } from "../../base/id.ts";
import type { AssistantMessage } from "../../protocol/message.ts";
import { CallWatch } from "./call-model.ts";
import { callsOf, emitTurnFailed, runModelTurn, runTools, type TurnLoop } from "./turn-loop.ts";

/**
 * Kit's own loop: asks the model, runs the tools that it calls, and asks again until it calls none. Returns that answer.
 * However it ends, every tool call in the history has a result, so that the next operation can continue from it.
 */
export async function runTurns(loop: TurnLoop): Promise<AssistantMessage> {
  using watch = new CallWatch(loop);
  for (;;) {
    loop.spending.check();
    if (loop.needsRoom("threshold")) await loop.makeRoom("threshold");
    const turnId = createId("turn");
    let toolCalls = 0;
    try {
      const message = await runModelTurn(loop, turnId, watch);
      const calls = callsOf(message);
      toolCalls = calls.length;
      if (toolCalls > 0) await runTools(loop, calls, { turnId });
      loop.emit({ type: "turn_end", tool_calls: toolCalls }, turnId);
      if (toolCalls === 0) {
        loop.work.runs += 1;
        return message;
      }
    } catch (error) {
      emitTurnFailed(loop, turnId, toolCalls);
      throw error;
    }
    loop.signal.throwIfAborted();
  }
}
