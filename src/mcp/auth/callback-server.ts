import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Waits on the loopback interface for the browser to come back from an authorization server. */
export interface CallbackServer {
  /** The address for the authorization server to send the browser to. */
  readonly url: string;
  /** Resolves with the parameters of the answer that has this `state`. Other requests are refused, and do not end the wait. */
  answer(state: string): Promise<URLSearchParams>;
  close(): void;
}

const path = "/callback";

/** Whether an address is one of such a wait. */
export function isCallbackAddress({ hostname, pathname }: URL): boolean {
  return hostname === "127.0.0.1" && pathname === path;
}

/** Listens on `port`, or on a free one if it is in use and not required. */
export async function openCallbackServer(
  port: number | undefined,
  { isRequired }: { readonly isRequired: boolean },
): Promise<CallbackServer> {
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>();
  let expected: string | undefined;
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? "", "http://127.0.0.1");
    const isAnswer = request.method === "GET" && url?.pathname === path;
    const isExpected = expected !== undefined && url?.searchParams.get("state") === expected;
    const text = !isAnswer
      ? "There is nothing here."
      : isExpected
        ? "kit has the answer. Close this page, and go back to the terminal."
        : "This answer belongs to another login. Log in with the address that the terminal shows now.";
    response.writeHead(isAnswer ? (isExpected ? 200 : 400) : 404, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      connection: "close",
    });
    response.end(`${text}\n`);
    if (isAnswer && isExpected && url !== null) resolve(url.searchParams);
  });
  const listen = async (number: number): Promise<void> => {
    server.listen(number, "127.0.0.1");
    await once(server, "listening");
  };
  await listen(port ?? 0).catch((error: unknown) => {
    if (isRequired) throw error;
    return listen(0);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    answer: (state) => {
      expected = state;
      return promise;
    },
    close: () => {
      server.close();
      server.closeIdleConnections();
    },
  };
}
