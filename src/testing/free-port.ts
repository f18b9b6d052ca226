import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A port that nothing listens on, and that systems assign to no program or connection that asks for any: it stays free
 * until its server is up, and while that is down.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const server = createServer().listen(port);
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
