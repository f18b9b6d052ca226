import fc from "fast-check";
import { expect, test } from "vitest";
import { createSseParser, type ServerSentEvent } from "./read-stream.ts";

function parse(pieces: readonly string[]): readonly ServerSentEvent[] {
  const parser = createSseParser();
  return pieces.flatMap((piece) => parser.push(piece));
}

/** The text in two pieces, cut at every place. */
function cuts(text: string): readonly (readonly string[])[] {
  return Array.from({ length: text.length + 1 }, (_, at) => [text.slice(0, at), text.slice(at)]);
}

const examples: readonly (readonly [string, string, readonly ServerSentEvent[]])[] = [
  ["an event", "id: 1\nevent: idle\ndata: {}\n\n", [{ id: "1", event: "idle", data: "{}" }]],
  ["no event name", "data: x\n\n", [{ event: "message", data: "x" }]],
  ["several lines of data", "data: a\ndata:\ndata: b\n\n", [{ event: "message", data: "a\n\nb" }]],
  ["only one space goes", "data:  a\ndata:b\n\n", [{ event: "message", data: " a\nb" }]],
  ["comments", ": alive\n\ndata: x\n: more\n\n:\n\n", [{ event: "message", data: "x" }]],
  ["a byte order mark", "\uFEFFdata: x\n\n", [{ event: "message", data: "x" }]],
  ["a second mark is text", "\uFEFF\uFEFFdata: x\n\ndata: y\n\n", [{ event: "message", data: "y" }]],
  ["an event without data", "id: 7\nevent: idle\n\ndata: x\n\n", [{ event: "message", data: "x" }]],
  ["an event that is not complete", "data: x\n\ndata: y\n", [{ event: "message", data: "x" }]],
  ["a field without a colon", "data\n\n", [{ event: "message", data: "" }]],
  ["unknown fields", "other: 1\ndata: x\n\n", [{ event: "message", data: "x" }]],
  ["an id with NUL", "id: a\0b\ndata: x\n\n", [{ event: "message", data: "x" }]],
  ["a colon in the data", "data: a:b: c\n\n", [{ event: "message", data: "a:b: c" }]],
  [
    "CR in between",
    "data: a\rdata: b\r\rdata: c\r\n\r\n",
    [
      { event: "message", data: "a\nb" },
      { event: "message", data: "c" },
    ],
  ],
];

test.each(examples)("reads %s, wherever it is cut", (_, text, expected) => {
  for (const lineEnd of ["\n", "\r", "\r\n"]) {
    const varied = text.includes("\r") ? text : text.replaceAll("\n", lineEnd);
    for (const pieces of cuts(varied)) expect(parse(pieces)).toEqual(expected);
    expect(parse([...varied])).toEqual(expected);
  }
});

const field = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n\0]/g, ""));
const events = fc.array(
  fc.record(
    {
      id: field,
      event: field.filter((name) => name !== ""),
      data: fc.array(field, { minLength: 1, maxLength: 4 }),
    },
    { requiredKeys: ["event", "data"] },
  ),
);

test("returns the written events for any line ends, comments and cuts", () => {
  fc.assert(
    fc.property(
      events,
      fc.record({ end: fc.constantFrom("\n", "\r", "\r\n"), mark: fc.boolean() }),
      fc.array(fc.nat({ max: 40 })),
      (written, { end, mark }, sizes) => {
        const text = written
          .map(({ id, event, data }) =>
            [
              `: a comment${end}`,
              ...(id === undefined ? [] : [`id: ${id}${end}`]),
              `event: ${event}${end}`,
              ...data.map((line) => `data: ${line}${end}`),
              end,
            ].join(""),
          )
          .join("");
        const pieces: string[] = [];
        let rest = (mark ? "\uFEFF" : "") + text;
        for (const size of sizes) {
          pieces.push(rest.slice(0, size));
          rest = rest.slice(size);
        }
        const expected = written.map(({ id, event, data }) => ({
          ...(id === undefined ? {} : { id }),
          event,
          data: data.join("\n"),
        }));
        expect(parse([...pieces, rest])).toEqual(expected);
      },
    ),
  );
});

test("never throws or hangs on text that is not a stream", () => {
  fc.assert(fc.property(fc.array(fc.string({ unit: "binary" })), (pieces) => void parse(pieces)));
});

test("an endless event is refused, endless comments are not", () => {
  const parser = createSseParser();
  for (let count = 0; count < 40; count += 1) parser.push(`:${"x".repeat(1_000_000)}\n`);
  const piece = "x".repeat(1_000_000);
  parser.push("data: ");
  expect(() => {
    for (let count = 0; count < 40; count += 1) parser.push(piece);
  }).toThrow(expect.objectContaining({ code: "unavailable" }));
});
