import type { Message } from "../../protocol/message.ts";
import { estimateTokens } from "./estimate-tokens.ts";

/**
 * Chooses the index of the first message to keep, so that what is kept fits into `keepTokens`.
 *
 * The cut never stands between a tool call and its result, and at least the newest exchange stays.
 * Gives 0 when there is nothing to cut.
 */
export function chooseCut(messages: readonly Message[], keepTokens: number): number {
  let tokens = 0;
  let cut = messages.length;
  while (cut > 0) {
    const message = messages[cut - 1];
    if (message === undefined) break;
    tokens += estimateTokens(message);
    if (tokens > keepTokens && cut < messages.length) break;
    cut -= 1;
  }
  // A history starts with somebody's words: a result without its call, or an answer to nothing, is
  // refused by some providers. Moving on keeps less, never splits.
  while (cut < messages.length && messages[cut]?.role !== "user") cut += 1;
  return cut >= messages.length ? lastExchange(messages) : cut;
}

// The newest exchange may alone be larger than what may be kept; it stays whole all the same, from
// the last call of a model on whose results it hangs.
function lastExchange(messages: readonly Message[]): number {
  for (let index = messages.length - 1; index > 0; index -= 1) {
    if (messages[index]?.role === "user") return index;
  }
  for (let index = messages.length - 1; index > 0; index -= 1) {
    if (messages[index]?.role === "assistant") return index;
  }
  return 0;
}
