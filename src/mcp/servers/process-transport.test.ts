import { expect, test } from "vitest";
import { limits } from "../limits.ts";
import { type ServerProcess, startServerProcess } from "./process-transport.ts";

async function start(onOutput: (piece: Buffer) => void): Promise<ServerProcess> {
  const script = "process.stdout.write(Array.from({ length: 100_000 }, (_, line) => line + '\\n').join(''))";
  return startServerProcess({
    command: process.execPath,
    args: ["-e", script],
    env: {},
    cwd: process.cwd(),
    onOutput,
    onErrorFlood: () => undefined,
  });
}

test("the output of a process arrives completely, and other work runs between its pieces", async () => {
  let turn = 0;
  const pieces: { readonly turn: number; readonly piece: Buffer }[] = [];
  const server = await start((piece) => {
    pieces.push({ turn, piece: Buffer.from(piece) });
    setImmediate(() => {
      turn += 1;
    });
  });
  await server.ended;
  const lines = Buffer.concat(pieces.map(({ piece }) => piece))
    .toString()
    .split("\n");
  expect(lines.length).toBe(100_001);
  expect(lines.findIndex((line, index) => index < 100_000 && line !== String(index))).toBe(-1);
  const ofTurns = Map.groupBy(pieces, (piece) => piece.turn);
  for (const together of ofTurns.values()) {
    const bytes = together.reduce((sum, { piece }) => sum + piece.length, 0);
    // The transport reads the rest of an ended process's output at once: at most twice the size of a pipe.
    expect(bytes).toBeLessThanOrEqual(131_072 + limits.reads.bytes);
  }
});

test("after a process was killed, nothing more of its output is read, not even buffered output", async () => {
  let pieces = 0;
  const server = await start(() => {
    pieces += 1;
    server.kill();
  });
  await server.ended;
  expect(pieces).toBe(1);
});
