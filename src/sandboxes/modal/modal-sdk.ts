import { defined } from "../../base/record.ts";
import { loadSdk } from "../remote/load-vendor-sdk.ts";
import type { RemoteOptions } from "../remote/remote-options.ts";

/** The part of `modal` 0.11.1 that kit uses, declared here so that the package need not be installed. */
export interface ModalSdk {
  readonly ModalClient: new (params: ModalParams) => ModalClient;
}

interface ModalParams {
  readonly tokenId?: string;
  readonly tokenSecret?: string;
  readonly environment?: string;
  /** Seconds that a request waits if the vendor throttles it. */
  readonly maxThrottleWaitSecs: number;
  readonly logger: Readonly<Record<"debug" | "info" | "warn" | "error", () => void>>;
}

export interface ModalClient {
  readonly apps: {
    fromName(name: string, params: { readonly createIfMissing: boolean }): Promise<ModalApp>;
  };
  readonly images: { fromRegistry(tag: string): ModalImage };
  readonly sandboxes: {
    create(app: ModalApp, image: ModalImage, params: ModalCreation): Promise<ModalMachine>;
    fromId(id: string): Promise<ModalMachine>;
    list(query: {
      readonly appId: string;
      readonly tags: Record<string, string>;
    }): AsyncIterable<ModalMachine>;
  };
}

export interface ModalApp {
  readonly appId: string;
}

/** An image, which is built for the first machine that uses it. */
export interface ModalImage {
  readonly imageId: string;
}

export interface ModalCreation {
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly env: Record<string, string>;
  readonly tags: Record<string, string>;
  readonly blockNetwork?: boolean;
  readonly outboundDomainAllowlist?: string[];
}

export interface ModalMachine {
  readonly sandboxId: string;
  getTags(): Promise<Record<string, string>>;
  /** The exit code of the machine; null while it runs. */
  poll(): Promise<number | null>;
  terminate(): Promise<unknown>;
  exec(
    words: string[],
    params: {
      readonly mode: "text";
      readonly stderr: "pipe" | "ignore";
      readonly env: Record<string, string>;
    },
  ): Promise<ModalProcess>;
}

export interface ModalProcess {
  readonly stdin: WritableStream<string>;
  readonly stdout: ReadableStream<string>;
  readonly stderr: ReadableStream<string>;
  /** Like `wait`, but can be aborted; without a signal the package polls for ever. */
  _wait(signal: AbortSignal): Promise<number>;
}

/** The version that kit is tested with. The registry's `latest` is an unrelated package of the same name. */
const version = "0.11.1";

/** Loads the vendor's package and creates its client, which connects on first use. */
export async function openModal(options: ModalOptions, root: string): Promise<ModalClient> {
  const sdk = await loadSdk<ModalSdk>("modal", root, { version, exports: "ModalClient" });
  const { tokenId, tokenSecret, environment, apiUrl } = options;
  const nothing = (): void => undefined;
  const open = (): ModalClient =>
    new sdk.ModalClient({
      ...defined({ tokenId, tokenSecret, environment }),
      // The package would wait without a limit; kit reports at once that the vendor is busy.
      maxThrottleWaitSecs: 0,
      logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    });
  return apiUrl === undefined ? open() : withVariable("MODAL_SERVER_URL", apiUrl, open);
}

/** The package reads the address only from the environment, in its constructor. */
function withVariable<Result>(name: string, value: string, work: () => Result): Result {
  const before = process.env[name];
  process.env[name] = value;
  try {
    return work();
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

export interface ModalOptions extends Omit<RemoteOptions, "apiKey"> {
  /** The two parts of the vendor's key; default: `MODAL_TOKEN_ID` and `MODAL_TOKEN_SECRET`, otherwise this computer's Modal profile. */
  readonly tokenId?: string | undefined;
  readonly tokenSecret?: string | undefined;
  /** The registry name of the image for new machines; default "debian:12". */
  readonly image?: string | undefined;
  /** The vendor's app that machines belong to, created if it is missing; default "kit". */
  readonly app?: string | undefined;
  /** The vendor's environment, such as "staging"; default: the profile's. */
  readonly environment?: string | undefined;
  /** The address of the vendor's API; default: the vendor's own. */
  readonly apiUrl?: string | undefined;
}
