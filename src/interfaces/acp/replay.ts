import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Message, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import { describeCall, diffOf, textContent } from "./call-view.ts";

/** A message with its position in the session's log, which makes ids that are the same in every replay. */
export interface ReplayedMessage {
  readonly position: number;
  readonly message: Message;
}

/**
 * Converts the messages of a session's log to the updates with which an editor shows the conversation again. Kit's own messages,
 * such as guidelines and summaries, are left out. A call without a result ends as failed: the process ended while it ran.
 */
export function toReplay(messages: readonly ReplayedMessage[], root: string): readonly SessionUpdate[] {
  const open = new Map<string, { readonly id: string; readonly call: ToolCallPart }>();
  const updates: SessionUpdate[] = [];
  const end = (result: ToolResultPart): void => {
    const started = open.get(result.tool_call_id);
    if (started === undefined) return;
    open.delete(result.tool_call_id);
    const change = result.is_error ? undefined : diffOf(started.call, root, undefined);
    const texts = result.content.flatMap((part) => (part.type === "text" ? [textContent(part.text)] : []));
    updates.push({
      sessionUpdate: "tool_call_update",
      toolCallId: started.id,
      status: result.is_error ? "failed" : "completed",
      content: change === undefined ? texts : [change],
    });
  };
  for (const { position, message } of messages) {
    const messageId = `message-${position}`;
    if (message.role === "tool") {
      for (const result of message.content) end(result);
      continue;
    }
    if (message.role === "user") {
      for (const text of textsOfPerson(message))
        updates.push({ sessionUpdate: "user_message_chunk", messageId, content: { type: "text", text } });
      continue;
    }
    for (const part of message.content) {
      if (part.type === "tool_call") {
        const id = `${messageId}-${part.tool_call_id}`;
        open.set(part.tool_call_id, { id, call: part });
        const described = describeCall(part, root);
        updates.push({ sessionUpdate: "tool_call", toolCallId: id, status: "in_progress", ...described });
      } else {
        const sessionUpdate = part.type === "text" ? "agent_message_chunk" : "agent_thought_chunk";
        if (part.text !== "")
          updates.push({ sessionUpdate, messageId, content: { type: "text", text: part.text } });
      }
    }
  }
  for (const { id } of open.values())
    updates.push({ sessionUpdate: "tool_call_update", toolCallId: id, status: "failed" });
  return updates;
}

/** Returns the texts of the person. For a skill, this is its command: the rest of the message is the skill's own text. */
function textsOfPerson({ source, content }: Extract<Message, { role: "user" }>): readonly string[] {
  const texts = content.flatMap((part) =>
    part.type === "text" ? [part.text] : [part.type === "image" ? "[image]" : "[file]"],
  );
  if (source === undefined) return texts;
  const [, name] = (source === "skill" && /^# Skill: (.+)/.exec(texts[0] ?? "")) || [];
  return name === undefined ? [] : [`/${name}`];
}
