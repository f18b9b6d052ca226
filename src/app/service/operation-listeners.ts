import type { EventListener } from "../../agents/events/emitter.ts";
import type { KitEvent } from "../../protocol/event.ts";

/** Who hears the events of one operation and of the tasks below it. */
export interface OperationListeners {
  /** Adds a listener; the function returned removes it. */
  add(operationId: string, listener: EventListener): () => void;
  hear(event: KitEvent): void;
}

/** Each event costs one look-up, however many operations are listened to. */
export function createOperationListeners(onError: (error: unknown) => void): OperationListeners {
  const families = new Map<string, Family>();
  return {
    add(operationId, listener) {
      const family: Family = { listener, members: new Set([operationId]) };
      families.set(operationId, family);
      return () => {
        for (const member of family.members) families.delete(member);
      };
    },
    hear(event) {
      if (families.size === 0) return;
      const family = families.get(event.operation_id) ?? adopt(families, event);
      if (family === undefined) return;
      try {
        const heard = family.listener(event);
        if (heard instanceof Promise) heard.catch(onError);
      } catch (error) {
        onError(error);
      }
    },
  };
}

interface Family {
  readonly listener: EventListener;
  readonly members: Set<string>;
}

function adopt(families: Map<string, Family>, event: KitEvent): Family | undefined {
  const family =
    event.parent_operation_id === undefined ? undefined : families.get(event.parent_operation_id);
  if (family !== undefined) {
    family.members.add(event.operation_id);
    families.set(event.operation_id, family);
  }
  return family;
}
