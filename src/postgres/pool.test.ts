import { once } from "node:events";
import { createServer } from "node:net";
import { onTestFinished, test } from "vitest";
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
