import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { openPool } from "./pool.ts";

/** A message of the Postgres protocol. */
function message(type: string, body: Buffer = Buffer.alloc(0)): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

test("a server that ends a connection in the same packet that opens it does not crash the process", async () => {
  const opened = [message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))];
  const ended = message("E", Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"));
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(Buffer.concat([...opened, ended])));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  onTestFinished(() => void server.close());
  const pool = await openPool(`postgres://kit:kit@127.0.0.1:${port}/kit`, 1);
  const connection = await pool.connect();
  connection.release(true);
  await pool.end();
});

test("a malformed message breaks its connection, and does not end the process", async () => {
  const opened = Buffer.concat([message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))]);
  const malformed = [
    ...["T", "D", "R", "G", "W", "t", "K", "Z"].flatMap((type) => [
      message(type),
      message(type, Buffer.from([255, 255])),
    ]),
    Buffer.from([0x54, 0, 0, 0, 0]),
    Buffer.from([0x44, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
  ];
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on("uncaughtException", note);
  onTestFinished(() => void process.off("uncaughtException", note));
  for (const bytes of malformed) {
    for (const isOpened of [false, true]) {
      let number = 0;
      const server = createServer((socket) => {
        socket
          .on("error", () => undefined)
          .on("data", () => {
            number += 1;
            if (isOpened && number === 1) socket.write(opened);
            else socket.end(bytes);
          });
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      const pool = await openPool(`postgres://kit:kit@127.0.0.1:${port}/kit`, 1);
      await pool.query("SELECT 1").catch(() => undefined);
      pool.destroy();
      await pool.end();
      server.close();
      await new Promise((resolve) => setImmediate(resolve));
      expect(uncaught, `${bytes.toString("hex")} ${isOpened}`).toEqual([]);
    }
  }
});
