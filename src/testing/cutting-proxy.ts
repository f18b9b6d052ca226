import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  readonly url: string;
  /** How many connections clients have opened. */
  readonly made: number;
  /** Cuts all open connections. */
  cutAll(): void;
  close(): Promise<void>;
}

/**
 * A proxy that cuts connections: `cuts` has, for each connection in the order of their opening, the number of bytes of
 * answers after which it is cut. Connections beyond the list are not cut.
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
