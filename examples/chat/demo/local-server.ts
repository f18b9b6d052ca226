import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

export interface LocalServer extends AsyncDisposable {
  readonly url: string;
}

export interface Call {
  /** Method and path, such as `POST /messages`. */
  readonly route: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Serves HTTP on a free port of this machine until it is disposed. */
export async function startLocalServer(
  answer: (call: Call, response: ServerResponse) => Promise<void>,
): Promise<LocalServer> {
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    text(request)
      .then((body) => answer({ route: `${method} ${url}`, headers, body }, response))
      // The client has disconnected or sent an unreadable body, so it gets no answer.
      .catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
