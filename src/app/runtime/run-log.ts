import type { EventBody } from "../../protocol/event.ts";
import type { WorkflowLog } from "../../workflows/workflow-context.ts";

/** A run's log: what it says are events. */
export function createRunLog(emit: (body: EventBody) => void): WorkflowLog {
  const write =
    (level: Extract<EventBody, { type: "log" }>["level"]): WorkflowLog["info"] =>
    (message, data) =>
      emit({
        type: "log",
        level,
        message,
        ...(data === undefined ? {} : { data: toData(data) }),
      });
  return { info: write("info"), warn: write("warning"), error: write("error") };
}

/** What an event carries is JSON: what is none, such as an error or a cycle, becomes a text. */
function toData(data: unknown): unknown {
  try {
    const plain = data instanceof Error ? { name: data.name, message: data.message } : data;
    return JSON.parse(JSON.stringify(plain) ?? "null");
  } catch {
    return String(data);
  }
}
