import { defined } from "../../base/record.ts";
import type { VerdictCheck, VerdictEnd, VerdictReason } from "../../protocol/verdict.ts";

type Place = Pick<Partial<VerdictReason>, "criterion" | "rule" | "path" | "line">;
/** More reasons of one check would tell nothing new. */
const mostOfOneCheck = 20;

/** The reasons of a verdict, in the order of the checks. */
export class Reasons {
  readonly all: VerdictReason[] = [];

  refuse(check: VerdictCheck, message: string, place: Place = {}): void {
    this.#add({ check, end: "refused", message, ...defined(place) });
  }

  ask(check: VerdictCheck, message: string, place: Place = {}): void {
    this.#add({ check, end: "ask", message, ...defined(place) });
  }

  break(message: string): void {
    this.#add({ check: "broken", end: "broken", message });
  }

  /** Whether the verdict cannot become `closed` any more by further checks. */
  get isDecided(): boolean {
    return this.all.some(({ end }) => end !== "ask");
  }

  /** A refusal counts more than a question, because it says what to do. */
  get end(): VerdictEnd {
    const ends = new Set(this.all.map(({ end }) => end));
    return (["broken", "refused", "ask"] as const).find((end) => ends.has(end)) ?? "closed";
  }

  #add(reason: VerdictReason): void {
    const same = this.all.filter(({ check }) => check === reason.check);
    if (same.some(({ message }) => message === reason.message)) return;
    if (same.length < mostOfOneCheck) this.all.push(reason);
  }
}
