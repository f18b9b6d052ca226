import type { KitEvent } from "../../protocol/event.ts";

interface OpenOperation {
  /** Whether a model answers. */
  isInTurn: boolean;
  /** The calls that have not ended, with the approvals that they wait for. */
  readonly calls: Map<string, string | undefined>;
}

interface OpenTask {
  readonly parent: string;
  readonly call: string | undefined;
  operation?: string;
}

/** The work of an operation and its tasks that has not ended, from their events. */
export class OpenWork {
  readonly #root: string;
  readonly #operations = new Map<string, OpenOperation>();
  readonly #tasks = new Map<string, OpenTask>();

  constructor(operationId: string) {
    this.#root = operationId;
  }

  push(event: KitEvent): void {
    const { operation_id, task_id } = event;
    const operation = this.#operation(operation_id);
    const task = task_id === undefined ? undefined : this.#tasks.get(task_id);
    if (task !== undefined && task.parent === event.parent_operation_id) task.operation = operation_id;
    switch (event.type) {
      case "turn_request":
        operation.isInTurn = true;
        return;
      case "turn":
      case "turn_end":
        operation.isInTurn = false;
        return;
      case "tool_start":
        operation.calls.set(event.tool_call_id, undefined);
        return;
      case "approval":
        // A question that its tool left alone is withdrawn after the call has ended.
        if (operation.calls.has(event.tool_call_id)) operation.calls.set(event.tool_call_id, undefined);
        return;
      case "approval_request":
        operation.calls.set(event.tool_call_id, event.approval_id);
        return;
      case "tool_end":
        operation.calls.delete(event.tool_call_id);
        return;
      case "task_start":
        this.#tasks.set(event.task_id, { parent: operation_id, call: event.tool_call_id });
        return;
      case "task_end":
        this.#tasks.delete(event.task_id);
        return;
      default:
        return;
    }
  }

  /** The approvals without which nothing goes on; empty while something goes on. */
  get awaited(): readonly string[] {
    return this.#awaitedBy(this.#root);
  }

  #awaitedBy(id: string | undefined): readonly string[] {
    const operation = id === undefined ? undefined : this.#operations.get(id);
    if (operation === undefined || operation.isInTurn) return [];
    return allOrNone(
      [...operation.calls].map(([call, approval]) => {
        if (approval !== undefined) return [approval];
        const tasks = [...this.#tasks.values()].filter((task) => task.parent === id && task.call === call);
        return allOrNone(tasks.map((task) => this.#awaitedBy(task.operation)));
      }),
    );
  }

  #operation(id: string): OpenOperation {
    const known = this.#operations.get(id);
    if (known !== undefined) return known;
    const operation = { isInTurn: false, calls: new Map<string, string | undefined>() };
    this.#operations.set(id, operation);
    return operation;
  }
}

/** All ids; none if one of the lists has none. */
function allOrNone(lists: readonly (readonly string[])[]): readonly string[] {
  return lists.every(({ length }) => length > 0) ? lists.flat() : [];
}
