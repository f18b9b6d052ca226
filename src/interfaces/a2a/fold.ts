import type { A2aState, A2aTask, A2aUpdate } from "../../protocol/a2a.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { TurnTexts } from "../openai/turn-texts.ts";
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
  readonly #texts: TurnTexts;
  #turn: string | undefined;
  /** The text of the newest turn so far. */
  text = "";
  /** The index of the last event. */
  index = 0;

  constructor({ taskId, contextId, operationId, after = 0 }: FollowedTask) {
    this.#ids = { taskId, contextId };
    this.#operationId = operationId;
    this.#after = after;
    this.#texts = new TurnTexts({ operationId });
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
    const news = this.#texts.push(event);
    if (event.type === "approval") return [this.#status("TASK_STATE_WORKING", event)];
    if (event.type === "operation_start" && event.operation_id === this.#operationId) {
      this.#turn = undefined;
      return [this.#status("TASK_STATE_WORKING", event)];
    }
    // The text of a torn turn is void, and the model says it again.
    if (news?.type === "turn_end" && news.isTorn) this.#turn = undefined;
    if (news?.type !== "delta" || news.delta.kind !== "text" || news.delta.text === "") return [];
    const { text, turn } = news.delta;
    const append = turn === this.#turn;
    this.#turn = turn;
    this.text = append ? this.text + text : text;
    const artifact = answerOf([textPart(text)]);
    return [{ artifactUpdate: { ...this.#ids, artifact, append, lastChunk: false } }];
  }

  #status(state: A2aState, { timestamp }: KitEvent): A2aUpdate {
    return { statusUpdate: { ...this.#ids, status: { state, timestamp } } };
  }
}
