import fc from "fast-check";
import { expect, test } from "vitest";
import type { EventBody } from "../protocol/event.ts";
import { createDeltas } from "./events.ts";
import { maskAnswer } from "./masked-parts.ts";
import { createSecretMask } from "./secrets.ts";

const secret = "sk-canary-0123456789";
const mask = createSecretMask([secret, "canary-01"]);

type Part = readonly ["reasoning_delta" | "text_delta", string];

/** The texts of the deltas, joined by kind. */
function streamed(parts: readonly Part[]): {
  readonly reasoning: string;
  readonly text: string;
  readonly all: string;
} {
  const seen = { reasoning: "", text: "", all: "" };
  const emit = (body: EventBody): void => {
    if (body.type !== "text_delta" && body.type !== "reasoning_delta") return;
    seen[body.type === "text_delta" ? "text" : "reasoning"] += body.text;
    seen.all += body.text;
  };
  const deltas = createDeltas({ emit, mask, partial: undefined });
  for (const part of parts) deltas.push(...part);
  deltas.end();
  return seen;
}

/** The same parts as a stored answer. */
function stored(parts: readonly Part[]) {
  const content = parts.map(([type, text]) => ({
    type: type === "text_delta" ? ("text" as const) : ("reasoning" as const),
    text,
  }));
  return maskAnswer(content, mask).map((part) => ("text" in part ? part.text : ""));
}

test("a secret that begins in the thoughts and ends in the answer is masked, live and in the log", () => {
  for (let at = 1; at < secret.length; at += 1) {
    const parts: readonly Part[] = [
      ["reasoning_delta", `It is ${secret.slice(0, at)}`],
      ["text_delta", `${secret.slice(at)}, I think.`],
    ];
    expect(streamed(parts)).toMatchObject({ reasoning: "It is ", text: "[secret], I think." });
    expect(stored(parts)).toEqual(["It is ", "[secret], I think."]);
  }
});

test("a text that only begins like a secret stays in its own part", () => {
  const parts: readonly Part[] = [
    ["reasoning_delta", "First sk-canary"],
    ["text_delta", "sk-"],
    ["reasoning_delta", "can"],
    ["text_delta", "The end."],
  ];
  expect(streamed(parts)).toMatchObject({ reasoning: "First sk-canarycan", text: "sk-The end." });
  expect(stored(parts)).toEqual(parts.map(([, text]) => text));
});

test("however an answer is cut into parts, nothing of a secret is left, and nothing else is lost", () => {
  const piece = fc.constantFrom("sk-", "canary", "-01", "23456789", "sk-canary-0123456789", " and ", "x");
  const kind = fc.constantFrom("reasoning_delta" as const, "text_delta" as const);
  fc.assert(
    fc.property(fc.array(fc.tuple(kind, piece), { maxLength: 12 }), (parts) => {
      const whole = mask(parts.map(([, text]) => text).join(""));
      expect(streamed(parts).all).toBe(whole);
      expect(stored(parts).join("")).toBe(whole);
    }),
  );
});
