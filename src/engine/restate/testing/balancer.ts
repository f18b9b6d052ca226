import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

const checkMs = 250;
const answerMs = 1_000;

interface Backend {
  readonly port: number;
  readonly sockets: Set<Socket>;
  isHealthy: boolean;
}

/** A balancer of connections between nodes of this machine: it checks `/health` of each node, and drops nodes that do not answer. */
export class Balancer {
  readonly #backends: Backend[] = [];
  readonly #server = createServer((socket) => this.#pass(socket));
  readonly #timer = setInterval(() => void this.#checkAll(), checkMs);
  #next = 0;

  static async start(): Promise<Balancer> {
    const balancer = new Balancer();
    await new Promise<void>((resolve) => balancer.#server.listen(0, "127.0.0.1", resolve));
    return balancer;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Adds a node, which gets calls once it is healthy. */
  add(port: number): void {
    this.#backends.push({ port, sockets: new Set(), isHealthy: false });
    void this.#checkAll();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    for (const { sockets } of this.#backends) for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #checkAll(): Promise<void> {
    await Promise.all(
      this.#backends.map(async (backend) => {
        backend.isHealthy = await isHealthy(backend.port);
        if (!backend.isHealthy) for (const socket of backend.sockets) socket.destroy();
      }),
    );
  }

  #pass(socket: Socket): void {
    socket.on("error", () => undefined);
    const healthy = this.#backends.filter(({ isHealthy }) => isHealthy);
    this.#next += 1;
    const backend = healthy[this.#next % Math.max(1, healthy.length)];
    if (backend === undefined) {
      socket.destroy();
      return;
    }
    const other = connect(backend.port, "127.0.0.1");
    backend.sockets.add(socket);
    other.on("error", () => undefined);
    other.once("close", () => socket.destroy());
    socket.once("close", () => {
      backend.sockets.delete(socket);
      other.destroy();
    });
    socket.pipe(other).pipe(socket);
  }
}

async function isHealthy(port: number): Promise<boolean> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  try {
    return await new Promise<boolean>((resolve) => {
      setTimeout(() => resolve(false), answerMs);
      session.on("error", () => resolve(false));
      const request = session.request({ ":path": "/health" });
      request.on("error", () => resolve(false));
      request.on("response", (headers) => resolve(headers[":status"] === 200));
      request.resume();
    });
  } finally {
    session.destroy();
  }
}
