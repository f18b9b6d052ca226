import type { AgentInputItem, AgentOutputItem } from "@openai/agents";
import type { Message, ToolResultPart } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { BackendTurn } from "../contract.ts";
import { partsText } from "../history.ts";

/** Kit's messages as the package has them: kit sends the model what its own history has. */
export function toInputItem(message: Message): readonly AgentInputItem[] {
  switch (message.role) {
    case "user":
      return [{ type: "message", role: "user", content: partsText(message.content) }];
    case "tool":
      return message.content.map((result) => ({
        type: "function_call_result",
        callId: result.tool_call_id,
        name: result.tool,
        status: "completed",
        output: toolOutput(result),
      }));
    case "assistant":
      return toItems(
        textOf(message),
        message.content.flatMap((part) =>
          part.type === "tool_call" ? [{ id: part.tool_call_id, tool: part.tool, args: part.args }] : [],
        ),
      );
  }
}

export function toOutputItems({ text, calls }: Pick<BackendTurn, "text" | "calls">): AgentOutputItem[] {
  return toItems(text, calls);
}

export function toolOutput({ content }: ToolResultPart): string {
  return partsText(content);
}

function toItems(
  text: string,
  calls: readonly { readonly id: string; readonly tool: string; readonly args: unknown }[],
): (AgentInputItem & AgentOutputItem)[] {
  const item = {
    type: "message" as const,
    role: "assistant" as const,
    status: "completed" as const,
    content: [{ type: "output_text" as const, text }],
  };
  const asked = calls.map(({ id, tool, args }) => ({
    type: "function_call" as const,
    callId: id,
    name: tool,
    status: "completed" as const,
    arguments: JSON.stringify(args),
  }));
  return text === "" ? asked : [item, ...asked];
}
