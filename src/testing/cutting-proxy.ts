import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  readonly url: string;
  /** How many connections were made. */
  readonly made: number;
  /** Cuts all connections that are open. */
  cutAll(): void;
  close(): Promise<void>;
}

/**
 * A way to a server that breaks: `cuts` says after how many bytes of answers each connection is cut, in
 * the order in which they are made; those beyond the list live.
 */
export async function openCuttingProxy(port: number, cuts: readonly number[] = []): Promise<CuttingProxy> {
  const open = new Set<Socket>();
  let made = 0;
  const server = createServer((near) => {
    const left = cuts[made] ?? Number.POSITIVE_INFINITY;
    made += 1;
    open.add(near);
    const far = connect({ host: "127.0.0.1", port });
    let passed = 0;
    const cut = (): void => {
      near.destroy();
      far.destroy();
      open.delete(near);
    };
    near.pipe(far);
    far.on("data", (data: Buffer) => {
      near.write(data.subarray(0, Math.max(0, left - passed)));
      passed += data.length;
      if (passed >= left) near.end(cut);
    });
    far.on("end", () => near.end());
    for (const socket of [near, far]) {
      socket.on("error", cut);
      socket.on("close", cut);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const own = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${own}`,
    get made() {
      return made;
    },
    cutAll() {
      for (const socket of open) socket.destroy();
    },
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
