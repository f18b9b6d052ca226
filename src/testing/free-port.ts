import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Returns a port that nothing listens on, outside the range that systems assign to programs that ask for any port. So it
 * stays free until the test's server starts, and while that server is down.
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
