import { useEffect, useState } from "react";
import {
  emptyTranscript,
  foldEvents,
  type KitEvent,
  type OperationRecord,
  type Transcript,
} from "../../../../src/client/index.ts";
import { asked, useClient } from "../../api/use-server.ts";

/** The most events of one operation that are read. */
const mostEvents = 20_000;

export interface OperationState {
  readonly transcript: Transcript;
  readonly error: unknown;
  /** Whether the operation has more events than this page reads. */
  readonly isCut: boolean;
}

const start: OperationState = { transcript: emptyTranscript, error: undefined, isCut: false };

/** The transcript of an operation, updated while it runs. */
export function useOperation(
  agent: string,
  id: string,
  operation: Pick<OperationRecord, "operation_id" | "first_index" | "last_index"> | undefined,
): OperationState {
  const client = useClient();
  const [state, setState] = useState(start);
  const { operation_id, first_index } = operation ?? {};
  const isOver = operation?.last_index !== undefined;
  useEffect(() => {
    setState(start);
    if (operation_id === undefined || first_index === undefined) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    let waiting: KitEvent[] = [];
    const show = (): void => {
      const fresh = waiting;
      waiting = [];
      if (!signal.aborted) setState((old) => ({ ...old, transcript: foldEvents(old.transcript, fresh) }));
    };
    const read = async (): Promise<void> => {
      let after = first_index - 1;
      let count = 0;
      for (;;) {
        const query = { id, operation_id, first_index, after, limit: 1_000 };
        const page = await client.agents.operationEvents(agent, query, { signal });
        waiting.push(...page.events);
        count += page.events.length;
        show();
        after = page.next_after ?? page.events.at(-1)?.index ?? after;
        if (page.next_after === undefined) break;
        if (count >= mostEvents) return setState((old) => ({ ...old, isCut: true }));
      }
      if (isOver) return;
      for await (const event of client.agents.events(agent, { id, after }, { signal })) {
        waiting.push(event);
        if (waiting.length === 1) setTimeout(show, 100);
      }
    };
    asked(client, read).catch((error: unknown) => {
      if (!signal.aborted) setState((old) => ({ ...old, error }));
    });
    return () => leaving.abort();
  }, [client, agent, id, operation_id, first_index, isOver]);
  return state;
}
