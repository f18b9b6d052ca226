import type { A2aState, A2aTask, A2aUpdate } from "../../protocol/a2a.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { UiFold } from "../ai-sdk/fold.ts";
import { answerOf, textPart, type WaitingCall, waitingStatus } from "./task.ts";

interface FollowedTask {
  readonly taskId: string;
  readonly contextId: string;
  readonly operationId: string;
  /** The index of the last event that the task before the updates has. */
  readonly after?: number;
}

/**
 * Folds the events of one operation and its tasks, from the first one on, into the updates of a task. Each turn of the model replaces
 * the text of the one before, so that the artifact ends as the answer.
 */
export class A2aFold {
  readonly #ids: { readonly taskId: string; readonly contextId: string };
  readonly #operationId: string;
  readonly #after: number;
  readonly #ui: UiFold;
  /** Whether the running turn has said a text. */
  #isSaid = false;
  /** The text of the newest turn so far. */
  text = "";
  /** The index of the last event. */
  index = 0;

  constructor({ taskId, contextId, operationId, after = 0 }: FollowedTask) {
    this.#ids = { taskId, contextId };
    this.#operationId = operationId;
    this.#after = after;
    this.#ui = new UiFold(operationId);
  }

  /** Returns the updates that an event becomes. */
  push(event: KitEvent): readonly A2aUpdate[] {
    this.index = event.index;
    const updates = this.#toUpdates(event);
    return event.index > this.#after ? updates : [];
  }

  /** Whether calls can have begun to wait, or still do, after an event. */
  mayWaitAfter({ type, index }: KitEvent): boolean {
    return index > this.#after && (type === "approval_request" || type === "approval");
  }

  /** Tells that calls wait. */
  wait(calls: readonly WaitingCall[]): readonly A2aUpdate[] {
    const status = waitingStatus(calls, this.#ids);
    return status === undefined ? [] : [{ statusUpdate: { ...this.#ids, status } }];
  }

  /** Ends with the task as it ended: with its answer, if that is not the text that was streamed. */
  end({ status, artifacts: [answer] = [] }: A2aTask): readonly A2aUpdate[] {
    const [part] = answer?.parts ?? [];
    const isKnown = part === undefined || ("text" in part && part.text === this.text);
    return [
      ...(answer === undefined || isKnown
        ? []
        : [{ artifactUpdate: { ...this.#ids, artifact: answer, append: false, lastChunk: true } }]),
      { statusUpdate: { ...this.#ids, status } },
    ];
  }

  #toUpdates(event: KitEvent): readonly A2aUpdate[] {
    const updates: A2aUpdate[] = [];
    for (const chunk of this.#ui.push(event)) {
      // The text of a torn turn is void, and the model says it again.
      if (chunk.type === "start-step" || chunk.type === "reset-step") this.#isSaid = false;
      if (chunk.type !== "text-delta" || chunk.delta === "") continue;
      const append = this.#isSaid;
      this.#isSaid = true;
      this.text = append ? this.text + chunk.delta : chunk.delta;
      const artifact = answerOf([textPart(chunk.delta)]);
      updates.push({ artifactUpdate: { ...this.#ids, artifact, append, lastChunk: false } });
    }
    const isBegin = event.type === "operation_start" && event.operation_id === this.#operationId;
    if (isBegin || event.type === "approval") updates.push(this.#status("TASK_STATE_WORKING", event));
    return updates;
  }

  #status(state: A2aState, { timestamp }: KitEvent): A2aUpdate {
    return { statusUpdate: { ...this.#ids, status: { state, timestamp } } };
  }
}
