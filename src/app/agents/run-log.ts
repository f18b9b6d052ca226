import type { EventBody } from "../../protocol/event.ts";
import type { WorkflowLog } from "../../workflows/workflow-context.ts";

type Mask = (text: string) => string;

/** A run's log: what it says are events, without the application's secrets. */
export function createRunLog(emit: (body: EventBody) => void, mask: Mask): WorkflowLog {
  const write =
    (level: Extract<EventBody, { type: "log" }>["level"]): WorkflowLog["info"] =>
    (message, data) =>
      emit({
        type: "log",
        level,
        message: mask(message),
        ...(data === undefined ? {} : { data: maskedData(data, mask) }),
      });
  return { info: write("info"), warn: write("warning"), error: write("error") };
}

/** What an event carries is JSON: what is none, such as an error or a cycle, becomes a text. */
function maskedData(data: unknown, mask: Mask): unknown {
  try {
    const plain = data instanceof Error ? { name: data.name, message: data.message } : data;
    return JSON.parse(mask(JSON.stringify(plain) ?? "null"));
  } catch {
    return mask(String(data));
  }
}
