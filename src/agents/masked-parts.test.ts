import fc from "fast-check";
import { expect, test } from "vitest";
import type { EventBody } from "../protocol/event.ts";
import { createDeltas } from "./events.ts";
import { createMaskedParts, maskAnswer } from "./masked-parts.ts";
import { createSecretMask, type SecretMask } from "./secrets.ts";

const secret = "sk-canary-0123456789";
const mask = createSecretMask([secret, "canary-01"]);

type Part = readonly ["reasoning_delta" | "text_delta", string];

/** The texts of the deltas, joined by kind, and those of neighbours of one kind. */
function streamed(parts: readonly Part[], by = mask) {
  const seen = { reasoning: "", text: "", all: "", parts: [] as Part[] };
  const emit = (body: EventBody): void => {
    if (body.type !== "text_delta" && body.type !== "reasoning_delta") return;
    seen[body.type === "text_delta" ? "text" : "reasoning"] += body.text;
    seen.all += body.text;
    seen.parts.push([body.type, body.text]);
  };
  const deltas = createDeltas({ emit, mask: by, partial: undefined });
  for (const part of parts) deltas.onDelta(...part);
  deltas.end();
  return { ...seen, parts: joined(seen.parts) };
}

/** Joins neighbours of one kind. */
function joined(parts: readonly Part[]): readonly Part[] {
  const whole: Part[] = [];
  for (const [type, text] of parts) {
    const [lastType, lastText] = whole.at(-1) ?? [];
    if (lastType === type) whole[whole.length - 1] = [type, lastText + text];
    else if (text !== "") whole.push([type, text]);
  }
  return whole;
}

/** The same parts as a stored answer. */
function stored(parts: readonly Part[], by = mask) {
  const content = parts.map(([type, text]) => ({
    type: type === "text_delta" ? ("text" as const) : ("reasoning" as const),
    text,
  }));
  return maskAnswer(content, by).map((part) => ("text" in part ? part.text : ""));
}

test("a secret that begins in the thoughts and ends in the answer is masked, live and in the log", () => {
  for (let at = 1; at < secret.length; at += 1) {
    const parts: readonly Part[] = [
      ["reasoning_delta", `It is ${secret.slice(0, at)}`],
      ["text_delta", `${secret.slice(at)}, I think.`],
    ];
    expect(streamed(parts)).toMatchObject({
      reasoning: "It is [secret]",
      text: "[secret], I think.",
    });
    expect(stored(parts)).toEqual(["It is [secret]", "[secret], I think."]);
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

test("a secret that goes on after a part of another kind is masked", () => {
  for (let at = 1; at < secret.length; at += 1) {
    const parts: readonly Part[] = [
      ["text_delta", `It is ${secret.slice(0, at)}`],
      ["reasoning_delta", "Hm."],
      ["text_delta", `${secret.slice(at)}, I think.`],
    ];
    expect(stored(parts)).toEqual(["It is [secret]", "Hm.", "[secret], I think."]);
    // A few characters do not wait for the next part of their kind, which may never come.
    const start = at <= 3 ? secret.slice(0, at) : "[secret]";
    expect(streamed(parts).text).toBe(`It is ${start}[secret], I think.`);
  }
});

test("an answer does not wait for its end because the thoughts ended like the beginning of a secret", () => {
  const seen: string[] = [];
  const parts = createMaskedParts<string>(mask, (_, text) => seen.push(text));
  parts.push("reasoning", "These are the risk");
  parts.push("reasoning", "s: sk-");
  for (const text of ["Yes", ", of", " course."]) parts.push("text", text);
  expect(seen.join("")).toBe("These are the risks: sk-Yes, of course.");
  parts.push("reasoning", `${secret} and ${secret}`);
  parts.push("text", "Yes.");
  expect(seen.join("")).toMatch(/\[secret\] and \[secret\]Yes\.$/);
});

test("each text stays in its part when one secret is the beginning of another", () => {
  const seen: string[] = [];
  const nested = createSecretMask(["abcd", "abcdefgh"]);
  const parts = createMaskedParts<string>(nested, (part, text) => seen.push(`${part}: ${text}`));
  parts.push("a", "abcd");
  parts.push("b", "ef");
  parts.push("c", "gh");
  parts.push("c", "efx tail");
  parts.push("a", "abcd");
  parts.push("b", "ef");
  parts.push("c", "x");
  parts.end();
  expect(seen).toEqual(["a: [secret]", "b: [secret]", "c: [secret]efx tail", "a: [secret]", "b: ef", "c: x"]);
});

/** Which characters of the parts belong to a secret for a reader who joins those that `reads` returns true for. */
function found(parts: readonly Part[], values: readonly string[], reads: (type: Part[0]) => boolean) {
  const hidden = parts.map(() => new Set<number>());
  const characters = parts.flatMap(([type, text], part) =>
    reads(type) ? Array.from(text, (_, at) => ({ part, at })) : [],
  );
  const text = parts.map(([type, text]) => (reads(type) ? text : "")).join("");
  for (const value of values)
    for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1))
      for (const { part, at: own } of characters.slice(at, at + value.length)) hidden[part]?.add(own);
  return hidden;
}

/** The parts with one mark for each run of hidden characters. */
function marked(parts: readonly Part[], hidden: readonly ReadonlySet<number>[]): readonly Part[] {
  return parts.map(([type, text], part) => [
    type,
    oneMark(Array.from(text, (char, at) => (hidden[part]?.has(at) ? "[secret]" : char)).join("")),
  ]);
}

const oneMark = (text: string): string => text.replace(/(\[secret\])+/g, "[secret]");

const readers: readonly ((type: Part[0]) => boolean)[] = [
  () => true,
  (type) => type === "text_delta",
  (type) => type === "reasoning_delta",
];

function expectMasked(parts: readonly Part[], by: SecretMask): void {
  const byReader = readers.map((reads) => found(parts, by.values, reads));
  const hidden = parts.map((_, part) => new Set(byReader.flatMap((one) => [...(one[part] ?? [])])));
  const expected = marked(parts, hidden);
  expect(stored(parts, by).map(oneMark)).toEqual(expected.map(([, text]) => text));
  const live = streamed(parts, by);
  for (const text of [live.all, live.text, live.reasoning])
    for (const value of by.values) expect(text.replaceAll("[secret]", "|")).not.toContain(value);
  // Where no part of another kind interrupts a secret, none of its characters can be out before it is complete.
  if (JSON.stringify(marked(parts, byReader[0] ?? [])) === JSON.stringify(expected))
    expect(live.parts.map(([type, text]) => [type, oneMark(text)])).toEqual(
      joined(expected).map(([type, text]) => [type, oneMark(text)]),
    );
}

const kind = fc.constantFrom("reasoning_delta" as const, "text_delta" as const);

test("however an answer is cut into parts, no reader can join a secret, and nothing else is lost or moved", () => {
  const pieces = fc.constantFrom("sk-", "canary", "-01", "23456789", "sk-canary-0123456789", " and ", "x");
  fc.assert(
    fc.property(fc.array(fc.tuple(kind, pieces), { maxLength: 12 }), (parts) => expectMasked(parts, mask)),
  );
  const value = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 4, maxLength: 9 });
  const piece = fc.string({ unit: fc.constantFrom("a", "b", "x"), maxLength: 5 });
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 3 }),
      fc.array(fc.tuple(kind, piece), { maxLength: 12 }),
      (values, parts) => expectMasked(parts, createSecretMask(values)),
    ),
    { numRuns: 1_000 },
  );
});

test("parts that alternate within what may be a secret cost the same each", () => {
  const seen: string[] = [];
  const long = "x".repeat(30_000);
  const parts = createMaskedParts<number>(createSecretMask([`${long}y`]), (_, text) => seen.push(text));
  for (let at = 0; at < long.length; at += 1) parts.push(at % 2, "x");
  expect(seen).toEqual([]);
  parts.end();
  expect(seen.join("")).toBe(long);
});
