import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { connect } from "node:net";

/** Listens on a free port of 127.0.0.1 and returns the port. */
export async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("The server has no port.");
  return address.port;
}

/** A port that no process listens on, for a server that needs a port number. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) throw new Error("The server has no port.");
  return address.port;
}

/** Waits until a server listens that does not report it. */
export async function untilListening(port: number): Promise<void> {
  for (;;) {
    const socket = connect({ host: "127.0.0.1", port });
    const isConnected = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isConnected) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
