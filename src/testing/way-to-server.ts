import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { freePort } from "./free-port.ts";

/** A proxy in front of a server, so that a test can make the server unreachable or hang. */
export interface WayToServer {
  /** The server's address, through the proxy. */
  readonly url: string;
  /** Breaks the connections, and refuses new ones. */
  close(): Promise<void>;
  open(): Promise<void>;
  /** Accepts connections and bytes, and passes nothing on. With `isDropped`, the present connections never resume. */
  freeze(how?: { readonly isDropped?: boolean }): void;
  thaw(): void;
  /** Passes nothing on any more of the connection that the server sees from this port. */
  hang(port: number): void;
}

/** Opens a TCP proxy to a server. */
export async function openWay(target: URL): Promise<WayToServer> {
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let isFrozen = false;
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        if (isFrozen) return;
        near.destroy();
        far.destroy();
      });
    }
    const pass = (): void => void near.pipe(far).pipe(near);
    const stop = (): void => {
      near.unpipe(far).pause();
      far.unpipe(near).pause();
    };
    if (isFrozen) waiting.add(pass);
    else pass();
    passes.set(near, { pass, stop, far });
    near.on("close", () => passes.delete(near));
  });
  const passes = new Map<
    Socket,
    { readonly pass: () => void; readonly stop: () => void; readonly far: Socket }
  >();
  const port = await freePort();
  const open = async (): Promise<void> => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  await open();
  const url = new URL(target);
  url.port = `${port}`;
  return {
    url: url.href,
    open,
    hang(port) {
      for (const { far, stop } of passes.values()) if (far.localPort === port) stop();
    },
    async close() {
      const closed = server.listening ? once(server, "close") : undefined;
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    freeze({ isDropped = false } = {}) {
      isFrozen = true;
      for (const { pass, stop } of passes.values()) {
        stop();
        if (!isDropped) waiting.add(pass);
      }
      if (isDropped) isFrozen = false;
    },
    thaw() {
      isFrozen = false;
      for (const pass of waiting) pass();
      waiting.clear();
    },
  };
}
