import type { UiChunk, UiMessage, UiPart } from "../../protocol/ui.ts";

/** Builds the assistant's message that a page has after reading the chunks. */
export function toUiMessage(id: string, chunks: Iterable<UiChunk>): UiMessage {
  const parts: UiPart[] = [];
  let metadata: UiMessage["metadata"];
  const callOf = (toolCallId: string): UiPart | undefined =>
    parts.findLast((part) => part.toolCallId === toolCallId);
  const change = (part: UiPart | undefined, fields: Readonly<Record<string, unknown>>): void => {
    if (part !== undefined) Object.assign(part, fields);
  };
  const apply = (chunk: UiChunk): void => {
    switch (chunk.type) {
      case "start-step":
        parts.push({ type: "step-start" });
        return;
      case "reset-step":
        parts.splice(parts.findLastIndex(({ type }) => type === "step-start") + 1);
        return;
      case "text-start":
        parts.push({ type: "text", text: "", state: "streaming" });
        return;
      case "reasoning-start":
        parts.push({ type: "reasoning", id: chunk.id, text: "", state: "streaming" });
        return;
      case "text-delta":
      case "reasoning-delta": {
        // Sources and files can come between two deltas.
        const part = parts.findLast(({ state }) => state === "streaming");
        change(part, { text: `${part?.text ?? ""}${chunk.delta}` });
        return;
      }
      case "text-end":
      case "reasoning-end":
        change(
          parts.findLast(({ state }) => state === "streaming"),
          { state: "done" },
        );
        return;
      case "tool-input-available": {
        const { toolCallId, toolName, input, providerExecuted, dynamic } = chunk;
        const type = dynamic ? { type: "dynamic-tool", toolName } : { type: `tool-${toolName}` };
        const fields = { state: "input-available", input, providerExecuted };
        const known = callOf(toolCallId);
        if (known === undefined) parts.push({ ...type, toolCallId, ...fields });
        else change(known, fields);
        return;
      }
      case "tool-approval-request":
        change(callOf(chunk.toolCallId), { state: "approval-requested", approval: { id: chunk.approvalId } });
        return;
      case "tool-approval-response": {
        const { approvalId, approved, reason } = chunk;
        const part = parts.findLast(
          ({ approval }) => (approval as { id?: string } | undefined)?.id === approvalId,
        );
        const approval = { id: approvalId, approved, ...(reason === undefined ? {} : { reason }) };
        change(part, { state: "approval-responded", approval });
        return;
      }
      case "tool-output-available":
        change(callOf(chunk.toolCallId), {
          state: "output-available",
          output: chunk.output,
          preliminary: chunk.preliminary,
        });
        return;
      case "tool-output-error":
        change(callOf(chunk.toolCallId), {
          state: "output-error",
          errorText: chunk.errorText,
          output: undefined,
          preliminary: undefined,
        });
        return;
      case "tool-output-denied":
        change(callOf(chunk.toolCallId), { state: "output-denied" });
        return;
      case "source-url":
      case "source-document":
      case "file":
        parts.push({ ...chunk });
        return;
      case "data-task":
      case "data-question": {
        const { type, id: dataId, data } = chunk;
        const known = parts.find((part) => part.type === type && part.id === dataId);
        if (known === undefined) parts.push({ type, id: dataId, data });
        else change(known, { data });
        return;
      }
      case "message-metadata":
      case "finish":
        if (chunk.messageMetadata !== undefined) metadata = { ...metadata, ...chunk.messageMetadata };
        return;
      default:
        return;
    }
  };
  for (const chunk of chunks) apply(chunk);
  return { id, role: "assistant", parts, ...(metadata === undefined ? {} : { metadata }) };
}
