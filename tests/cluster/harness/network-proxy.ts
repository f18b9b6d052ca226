import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

interface Link {
  readonly near: Socket;
  readonly far: Socket;
}

/** A proxy between one machine and a server, which acts as their network: a test can cut it, with or without notice, and redirect it. */
export class NetworkProxy {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #target: number;
  #state: "open" | "silent" | "refused" = "open";
  #isMute = false;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer({ allowHalfOpen: true }, (near) => this.#pass(near));
  }

  static async to(port: number): Promise<NetworkProxy> {
    const proxy = new NetworkProxy(port);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** From now on packets in both directions are dropped, also those of new connections; neither side notices. */
  silence(): void {
    this.#state = "silent";
    for (const { near, far } of this.#links) {
      near.pause();
      far.pause();
    }
  }

  /** Resets all connections, also new ones. */
  reset(): void {
    this.#state = "refused";
    this.#drop();
  }

  /** Lets connections pass again. Silenced connections are broken, because their packets are lost. */
  restore(target: number = this.#target): void {
    this.#target = target;
    this.#state = "open";
    this.#drop();
  }

  /** New connections get no notifications of Postgres: the proxy replaces their LISTEN by a harmless statement. */
  mute(isMute: boolean): void {
    this.#isMute = isMute;
    this.#drop();
  }

  close(): void {
    this.reset();
    this.#server.close();
  }

  #drop(): void {
    for (const { near, far } of this.#links) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
    this.#links.clear();
  }

  #pass(near: Socket): void {
    near.on("error", () => undefined);
    if (this.#state === "refused") {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ host: "127.0.0.1", port: this.#target, allowHalfOpen: true });
    const link: Link = { near, far };
    this.#links.add(link);
    if (this.#state === "silent") near.pause();
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on("error", () => undefined);
      from.on("data", (data: Buffer) => {
        if (this.#state === "silent") return;
        const passed = this.#isMute && from === near ? withoutListen(data) : data;
        if (!to.write(passed)) from.pause();
      });
      to.on("drain", () => {
        if (this.#state === "open") from.resume();
      });
      from.on("end", () => {
        if (this.#state === "open") to.end();
      });
      from.on("close", () => {
        if (this.#state === "silent") return;
        this.#links.delete(link);
        to.destroy();
      });
    }
  }
}

/** The text has the same length, so that the length in the message stays true. */
function withoutListen(data: Buffer): Buffer {
  return data.includes('LISTEN "')
    ? Buffer.from(data.toString("latin1").replaceAll('LISTEN "', 'NOTIFY "'), "latin1")
    : data;
}
