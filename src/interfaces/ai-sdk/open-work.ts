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
      case "approval":
        operation.calls.set(event.tool_call_id, undefined);
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

  /** Ids of the approvals that calls wait for. */
  get waiting(): readonly string[] {
    const calls = [...this.#operations.values()].flatMap((operation) => [...operation.calls.values()]);
    return calls.filter((approval) => approval !== undefined);
  }

  /** Whether nothing goes on until a person decides. */
  get rests(): boolean {
    return this.#rests(this.#root);
  }

  #rests(id: string | undefined): boolean {
    const operation = id === undefined ? undefined : this.#operations.get(id);
    if (operation === undefined || operation.isInTurn || operation.calls.size === 0) return false;
    return [...operation.calls].every(([call, approval]) => {
      if (approval !== undefined) return true;
      const tasks = [...this.#tasks.values()].filter((task) => task.parent === id && task.call === call);
      return tasks.length > 0 && tasks.every((task) => this.#rests(task.operation));
    });
  }

  #operation(id: string): OpenOperation {
    const known = this.#operations.get(id);
    if (known !== undefined) return known;
    const operation = { isInTurn: false, calls: new Map<string, string | undefined>() };
    this.#operations.set(id, operation);
    return operation;
  }
}
